edit "s/Comment [0-9]*\./Comment $round./" kernel.c
echo '{"summary": "a better comment"}'
