for page in cutile-knobs cutile-api-rules cutile-performance-model cutile-ir-dump cutile-patterns; do
    grep -q "^$page: " "$KARVE_BRIEF" || exit 6
done
grep -q 'the kernel is memory-bound (1.0 operations per byte, fewer than 10)' "$KARVE_BRIEF" || exit 9
grep -q 'playbook A, priority 1: memory-bound' "$KARVE_BRIEF" || exit 8
echo '{"title": "TMA replace gather", "bottleneck": "memory", "mechanism": "whole tiles are loaded by hardware", "expected_ratio": 2.0, "direction": "memory", "entry": "cutile-tma-loads"}'
