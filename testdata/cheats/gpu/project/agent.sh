# An agent that plays kernels: in round N it proposes and copies the file kernels/N-NAME.py or .cu.
set -eu
round=$(sed -n '1s/^# Round \([0-9]*\):.*/\1/p' "$KARVE_BRIEF")
file=$(echo kernels/"$round"-*)
test -f "$file" || file=""
name=$(basename "${file%.*}")
case $KARVE_TASK,$file in
    propose,) echo '{"exhausted": "all kernels were played"}' ;;
    propose,*) echo "{\"title\": \"$name\", \"mechanism\": \"$name\", \"expected_ratio\": 2.0}" ;;
    *,) echo '{"give_up": "there is no such kernel"}' ;;
    *) cp "$file" "kernel.${file##*.}" && echo done ;;
esac
