
# Names of campaigns and rounds, which only karve knows.
complete -c karve -l campaign -x -a '(karve names campaigns 2>/dev/null)'
complete -c karve -n '__fish_seen_subcommand_from show diff why' -f -a '(karve names rounds 2>/dev/null)'
