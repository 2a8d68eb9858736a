echo "I made it faster, trust me."
