claim "name number $round" "name $round explains more" 1.05
