claim "say more in comments" "a reader is faster too" 1.1
