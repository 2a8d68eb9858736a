//! Which kind of kernel a Triton source is, for the TileIR backend: the class decides the
//! configurations to try and what to expect.

use serde::Serialize;

/// The class of a kernel.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TileirClass {
    /// Its name.
    pub name: &'static str,
    /// How certain the rule is, 0 to 1.
    pub confidence: f64,
    /// The speedup to expect, from and to.
    pub expected: (f64, f64),
    /// Whether loads by TMA are mandatory.
    pub needs_tma: bool,
    /// Configurations to try.
    pub configs: Vec<TileirConfig>,
}

/// A configuration: tile sizes, blocks of a cluster, and resident blocks. `num_warps` is ignored by
/// the backend.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TileirConfig {
    /// Tile sizes by name.
    pub tile: Vec<(&'static str, u32)>,
    /// Blocks of a cluster.
    pub num_ctas: u32,
    /// Resident blocks, the most important knob.
    pub occupancy: u32,
}

/// The class of a Triton kernel by what its source calls.
pub fn classify(source: &str) -> Option<TileirClass> {
    let code = source.lines().map(|line| line.split('#').next().unwrap_or_default());
    let code: String = code.collect::<Vec<_>>().join("\n");
    let calls = |names: &[&str]| names.iter().any(|name| code.contains(name));
    if !calls(&["triton.jit", "@triton", "tl.load"]) {
        return None;
    }
    let reduces = calls(&["tl.sum(", "tl.max(", "tl.min(", "tl.reduce("]);
    let scales = calls(&["rsqrt(", "tl.sqrt(", "math.sqrt(", "tl.exp("]);
    Some(if calls(&["tl.dot(", "tl.dot_scaled("]) {
        class("dot", 0.95, (1.2, 2.0), dot_configs())
    } else if reduces && scales {
        class("norm-like", 0.90, (2.0, 5.0), row_configs())
    } else if reduces {
        class("reduction", 0.75, (1.8, 4.0), row_configs())
    } else {
        class("element-wise", 0.85, (1.5, 3.0), flat_configs())
    })
}

fn class(
    name: &'static str,
    confidence: f64,
    expected: (f64, f64),
    configs: Vec<TileirConfig>,
) -> TileirClass {
    TileirClass { name, confidence, expected, needs_tma: name == "dot", configs }
}

/// Eight for products: square and flat tiles, alone and in pairs of blocks.
fn dot_configs() -> Vec<TileirConfig> {
    let tiles = [(128, 128, 64), (128, 256, 64), (256, 128, 64), (256, 256, 64)];
    let of = |(m, n, k): (u32, u32, u32), num_ctas| TileirConfig {
        tile: vec![("BLOCK_M", m), ("BLOCK_N", n), ("BLOCK_K", k)],
        num_ctas,
        occupancy: 1,
    };
    tiles.into_iter().flat_map(|tile| [of(tile, 1), of(tile, 2)]).collect()
}

/// Six with one row for each block, and more and more of them resident.
fn row_configs() -> Vec<TileirConfig> {
    let of = |occupancy| TileirConfig { tile: vec![("BLOCK_M", 1)], num_ctas: 1, occupancy };
    [1, 2, 4, 8, 16, 32].map(of).to_vec()
}

/// Seven for kernels without a reduction.
fn flat_configs() -> Vec<TileirConfig> {
    let all = [(256, 8), (512, 8), (1024, 4), (1024, 8), (2048, 4), (4096, 2), (8192, 1)];
    let of = |(block, occupancy)| TileirConfig {
        tile: vec![("BLOCK_SIZE", block)],
        num_ctas: 1,
        occupancy,
    };
    all.map(of).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_triton_kernel_has_one_of_four_classes_with_configurations_to_try() {
        let check = |body: &str, want: Option<(&str, f64, usize)>| {
            let found = classify(&format!("@triton.jit\ndef k():\n    {body}\n"));
            let found = found.map(|class| (class.name, class.confidence, class.configs.len()));
            assert_eq!(found, want, "{body}");
        };
        check("acc = tl.dot(a, b, acc)", Some(("dot", 0.95, 8)));
        check("x / tl.sqrt(tl.sum(x * x) + eps)", Some(("norm-like", 0.90, 6)));
        check("tl.sum(tl.load(p))", Some(("reduction", 0.75, 6)));
        check("tl.load(p) + 1  # no tl.dot(", Some(("element-wise", 0.85, 7)));
        assert_eq!(classify("int main(void) { return 0; }"), None);
        assert!(classify("@triton.jit\ntl.dot(a, b)").unwrap().needs_tma);
    }
}
