
# Names of campaigns and rounds, which only karve knows.
_karve_names() {
    case ${words[CURRENT - 1]} in
        --campaign) compadd -- ${(f)"$(karve names campaigns 2>/dev/null)"} && return ;;
        show | diff | why) compadd -- ${(f)"$(karve names rounds 2>/dev/null)"} && return ;;
    esac
    _karve "$@"
}
compdef _karve_names karve
