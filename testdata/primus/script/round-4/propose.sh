cat <<'END'
{"round": 4, "primary_hypothesis": "Four stages hide more latency", "bottleneck_class": "compute",
 "expected_benefit": "+3%", "risks": ["registers"], "verification_signal": "tensor_pct up",
 "planned_modified_files": ["primus_turbo/triton/gemm/gemm_fp8_kernel.py"], "rejected_alternatives": [], "evidence_paths": []}
END
