
# Names of campaigns and rounds, which only karve knows.
_karve_names() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
    case "$prev" in
        --campaign)
            COMPREPLY=($(compgen -W "$(karve names campaigns 2>/dev/null)" -- "$cur"))
            return ;;
        show | diff | why)
            COMPREPLY=($(compgen -W "$(karve names rounds 2>/dev/null) --json --help" -- "$cur"))
            return ;;
    esac
    _karve "$@"
}
complete -F _karve_names -o nosort -o bashdefault -o default karve
