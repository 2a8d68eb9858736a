# An agent that plays a script: script/round-N/TASK.sh, or script/every/TASK.sh, is what it does.
# A second try at a proposal plays propose-again.sh if there is one. Nothing left: exhausted.
set -eu

# claim TITLE MECHANISM RATIO: answers with a hypothesis.
claim() {
    printf '{"title": "%s", "mechanism": "%s", "expected_ratio": %s}\n' "$1" "$2" "$3"
}

# edit SED-SCRIPT [FILE]: changes the kernel, or another file.
edit() {
    sed "$1" "${2:-kernel.sh}" >edited.tmp
    cat edited.tmp >"${2:-kernel.sh}"
    rm edited.tmp
}

round=$(sed -n '1s/^# Round \([0-9]*\):.*/\1/p' "$KARVE_BRIEF")
task=$KARVE_TASK
again=$task
if grep -q '^## Your last answer was refused' "$KARVE_BRIEF"; then
    again=$task-again
fi
for part in "script/round-$round/$again.sh" "script/round-$round/$task.sh" \
    "script/every/$task.sh"; do
    if [ -f "$part" ]; then
        . "./$part"
        exit 0
    fi
done
case $task in
    propose) echo '{"exhausted": "the script is at its end"}' ;;
    *) echo '{"give_up": "the script is at its end"}' ;;
esac
