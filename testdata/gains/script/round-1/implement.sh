edit 's/^TIME=.*/TIME=50\nBROKEN/'
echo '{"summary": "skip every other iteration", "usage": {"tokens": 1200, "usd": 0.02}}'
