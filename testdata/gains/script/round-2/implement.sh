edit 's/^TIME=.*/TIME=60/'
echo "prefetching, as plain text"
