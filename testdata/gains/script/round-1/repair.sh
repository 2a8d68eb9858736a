edit '/^BROKEN/d'
echo '{"summary": "a line too many is gone"}'
