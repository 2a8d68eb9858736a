cat <<'END'
{"round": 2, "primary_hypothesis": "Prefetch the scales because loads wait", "bottleneck_class": "compute",
 "expected_benefit": "+8%", "risks": ["registers"], "verification_signal": "tensor_pct up",
 "planned_modified_files": ["primus_turbo/triton/gemm/gemm_fp8_kernel.py"], "rejected_alternatives": [], "evidence_paths": []}
END
