edit 's/^# The kernel.*/# The fastest kernel there is./'
echo '{"summary": "documented"}'
