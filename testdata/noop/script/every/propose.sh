claim "comment number $round" "comment $round explains more" 1.05
