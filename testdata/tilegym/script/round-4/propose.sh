grep -q 'try other directions before pipeline' "$KARVE_BRIEF" || exit 7
echo '{"title": "plain store", "bottleneck": "memory", "mechanism": "the store is small", "expected_ratio": 1.02, "direction": "memory", "entry": "cutile-plain-store"}'
