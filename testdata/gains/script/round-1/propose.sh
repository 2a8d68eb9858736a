claim "halve the work" "half of the iterations are not needed" 2.0
