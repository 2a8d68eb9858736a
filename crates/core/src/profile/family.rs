//! Families of kernels: what kind of work a kernel does, by the words in its name.

/// Families with words that show them; the first one with a word in the name counts.
const FAMILIES: [(&str, &[&str]); 11] = [
    (
        "communication",
        &["allreduce", "all_reduce", "allgather", "all_gather", "alltoall", "sendrecv"],
    ),
    ("attention", &["attention", "attn", "fmha", "flash"]),
    ("softmax", &["softmax"]),
    ("normalization", &["norm"]),
    ("convolution", &["convol", "conv1d", "conv2d", "conv3d", "dgrad", "wgrad", "fprop"]),
    ("matrix product", &["gemm", "gemv", "matmul", "matvec"]),
    ("quantization", &["quant", "amax"]),
    ("scan, sort", &["scan", "cumsum", "sort", "topk"]),
    ("layout", &["transpose", "permute", "copy", "memset", "convert", "cast", "gather", "fill"]),
    ("reduction", &["reduc", "argmax", "argmin", "sum", "pool"]),
    ("elementwise", &["elementwise", "pointwise", "unary", "binary", "relu", "gelu", "silu"]),
];

/// Kernels whose names say nothing.
const OTHER: &str = "other";

/// The family of a kernel.
pub fn family_of(name: &str) -> &'static str {
    let name = name.to_lowercase();
    let found = FAMILIES.iter().find(|(_, words)| words.iter().any(|word| name.contains(word)));
    found.map_or(OTHER, |(family, _)| family)
}

/// All families, in the order in which they are shown.
pub fn families() -> impl Iterator<Item = &'static str> {
    FAMILIES.iter().map(|(family, _)| *family).chain([OTHER])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_kernel_shows_its_family() {
        for (name, want) in [
            ("void gemm<128, 64>(float const*, float*)", "matrix product"),
            ("sm90_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x64", "matrix product"),
            ("sm80_xmma_fprop_implicit_gemm_f32f32_tf32f32_f32", "convolution"),
            ("void at::native::vectorized_elementwise_kernel<4, float>", "elementwise"),
            (
                "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel",
                "normalization",
            ),
            ("void at::native::reduce_kernel<512, 1>", "reduction"),
            ("Kernel_AllReduce_Sum_bf16_RING_LL", "communication"),
            ("flash_fwd_splitkv_kernel", "attention"),
            ("void at::native::tensor_kernel_scan_outer_dim<float>", "scan, sort"),
            ("_fp8_quantize_rowwise", "quantization"),
            ("mine", "other"),
        ] {
            assert_eq!(family_of(name), want, "{name}");
            assert!(families().any(|family| family == want));
        }
    }
}
