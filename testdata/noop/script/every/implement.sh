edit "s/sum_[0-9]*/sum_$round/" kernel.c
echo '{"summary": "a better name"}'
