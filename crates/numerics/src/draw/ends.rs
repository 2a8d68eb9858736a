//! The ends of declared ranges: whole tensors or rows of the lowest or of the highest value, rows
//! of both, and a few of them among others. A random draw of many values hardly ever meets an end.

use super::Draw;
use super::lanes::StreamLanes;
use crate::tensor::{self, Dtype};

/// Elements at the ends of a row that keeps its others, at most.
const FEW_MAX: u64 = 4;

/// Changes a tensor that was drawn like that; one without ends stays as it is.
pub(super) fn ends(draw: &Draw, dtype: Dtype, row: usize, lanes: &mut StreamLanes, out: &mut [u8]) {
    let width = dtype.bytes();
    let mut both = vec![0; 2 * width];
    match draw {
        Draw::Integers { low, high } => tensor::from_i64(dtype, &[*low, *high], &mut both),
        Draw::Uniform { low, high } => tensor::from_f64(dtype, &[*low, *high], &mut both),
        _ => return,
    }
    let of = |which: u64| if which == 0 { &both[..width] } else { &both[width..] };
    // The whole tensor, or row by row.
    let whole = lanes.below(4);
    for row in out.chunks_mut(row * width) {
        match if whole < 2 { whole } else { lanes.below(4) } {
            choice @ (0 | 1) => {
                row.chunks_exact_mut(width).for_each(|to| to.copy_from_slice(of(choice)));
            }
            2 => {
                let mut at = lanes.word();
                for to in row.chunks_exact_mut(width) {
                    at = at.wrapping_mul(0x915f_77f5).wrapping_add(0x9e37_79b9);
                    to.copy_from_slice(of(u64::from(at >> 31)));
                }
            }
            _ => {
                for _ in 0..=lanes.below(FEW_MAX) {
                    let at = lanes.below((row.len() / width) as u64) as usize * width;
                    row[at..at + width].copy_from_slice(of(lanes.below(2)));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{InputPattern, PatternTarget, apply, fill};
    use super::*;

    const ROW: usize = 32;

    fn rows(draw: &Draw, dtype: Dtype, seed: u64) -> Vec<Vec<f64>> {
        let mut out = vec![0; 60 * ROW * dtype.bytes()];
        fill(draw, dtype, seed, 1, &mut out);
        let pattern = InputPattern::Ends;
        apply(&PatternTarget { pattern, hostile: Some(draw), dtype, row: ROW }, seed, 1, &mut out);
        let mut values = Vec::new();
        tensor::to_f64(dtype, &out, &mut values);
        values.chunks(ROW).map(<[f64]>::to_vec).collect()
    }

    #[test]
    fn rows_meet_both_ends_alone_together_and_among_others() {
        let (low, high) = (i64::from(i32::MIN), i64::from(i32::MAX));
        for (draw, dtype, low, high) in [
            (Draw::Integers { low, high }, Dtype::I32, low as f64, high as f64),
            (Draw::Integers { low: -127, high: 127 }, Dtype::I8, -127.0, 127.0),
            (Draw::Uniform { low: 0.0, high: 1.0 }, Dtype::F32, 0.0, 1.0),
        ] {
            let mut whole = 0;
            for seed in 0..40 {
                let rows = rows(&draw, dtype, seed);
                if rows.iter().flatten().all(|v| *v == rows[0][0]) {
                    whole += 1;
                    continue;
                }
                let of = |is: &dyn Fn(&Vec<f64>) -> bool| rows.iter().filter(|row| is(row)).count();
                let is_end = |v: &f64| *v == low || *v == high;
                let both = |row: &Vec<f64>| row.contains(&low) && row.contains(&high);
                assert!(of(&|row| row.iter().all(|v| *v == low)) >= 3, "{draw:?}");
                assert!(of(&|row| row.iter().all(|v| *v == high)) >= 3, "{draw:?}");
                assert!(of(&|row| both(row) && row.iter().all(is_end)) >= 3, "{draw:?}");
                assert!(of(&|row| row.iter().any(is_end) && !row.iter().all(is_end)) >= 3);
                assert!(rows.iter().flatten().all(|v| (low..=high).contains(v)), "{draw:?}");
            }
            assert!((8..32).contains(&whole), "{draw:?}: {whole}");
        }
    }
}
