//! Run on a machine with a GPU; elsewhere they say that they were skipped.

use super::*;
use karve_numerics::accuracy::{AccuracyRuleSet, CrossBound};
use karve_numerics::draw::{Draw, ElementRequest, InputPattern, PatternTarget, Poison};
use karve_numerics::tensor;

fn stage() -> Option<GpuStage> {
    match GpuStage::open(0) {
        Ok(stage) => Some(stage),
        Err(error) if error.kind == GpuFailure::Missing => {
            println!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn large_inputs_are_there_once_and_small_ones_as_often_as_needed() {
    let Some(mut stage) = stage() else {
        return;
    };
    let large = stage.facts().memory_bytes / 4;
    assert!(stage.is_large(large) && !stage.is_large(1 << 20));
    let one = stage.input_memory(large).expect("memory");
    let other = stage.input_memory(large - (1 << 20)).expect("memory");
    assert!(Arc::ptr_eq(&one, &other));
    let small = [0; 2].map(|_| stage.input_memory(1 << 20).expect("memory"));
    assert!(!Arc::ptr_eq(&small[0], &small[1]));
    drop((one, other));
    assert_eq!(stage.input_memory(large + (1 << 20)).expect("memory").bytes(), large + (1 << 20));
}

/// A tensor with these bytes.
fn put(stage: &GpuStage, dtype: Dtype, bytes: &[u8]) -> GpuTensor {
    let at = stage.gpu().alloc(bytes.len() as u64).expect("memory");
    stage.gpu().to_device(at, bytes).expect("a copy");
    GpuTensor { at, dtype, count: (bytes.len() / dtype.bytes()) as u64 }
}

fn get(stage: &GpuStage, tensor: GpuTensor) -> Vec<u8> {
    let mut bytes = vec![0; tensor.count as usize * tensor.dtype.bytes()];
    stage.gpu().to_host(tensor.at, &mut bytes).expect("a copy");
    bytes
}

fn values(stage: &GpuStage, tensor: GpuTensor) -> Vec<f64> {
    let mut values = Vec::new();
    tensor::to_f64(tensor.dtype, &get(stage, tensor), &mut values);
    values
}

const ROW: usize = 96;

/// What a device draws: elements of a type, with a pattern.
fn drawn(
    stage: &mut GpuStage,
    draw: &Draw,
    dtype: Dtype,
    pattern: Option<InputPattern>,
    seed: u64,
) -> Vec<f64> {
    let hostile = Draw::Large { full: false };
    let count = (200 * ROW) as u64;
    let target = |pattern| PatternTarget { pattern, hostile: Some(&hostile), dtype, row: ROW };
    let pattern = pattern.map(target);
    let request = ElementRequest { draw, pattern, dtype, seed, stream: 2, count };
    let of = ElementDraw::of(&request).expect("a draw by element");
    let room = put(stage, dtype, &vec![0; count as usize * dtype.bytes()]);
    stage.draw(&[TensorDraw { at: room.at, count, draw: of }]).expect("a draw");
    let found = values(stage, room);
    stage.gpu().free(room.at).expect("memory is freed");
    found
}

#[test]
fn poison_is_not_a_number_in_any_type_and_place() {
    let Some(mut stage) = stage() else { return };
    for dtype in [Dtype::F64, Dtype::F32, Dtype::F16, Dtype::Bf16] {
        for (count, offset) in [(1_003, 0), (1_000, 1)] {
            let room = put(&stage, dtype, &vec![0; (count + offset) * dtype.bytes()]);
            let draw = ElementDraw::of_poison(Poison::Nan, 1, dtype, count as u64);
            let draw = draw.expect("a draw by element");
            let at = room.at + (offset * dtype.bytes()) as u64;
            stage.draw(&[TensorDraw { at, count: count as u64, draw }]).expect("a draw");
            let found = values(&stage, room);
            assert!(found[offset..].iter().all(|value| value.is_nan()), "{dtype:?}");
            assert!(found[..offset].iter().all(|value| *value == 0.0), "{dtype:?}");
        }
    }
}

fn mean_and_sd(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt())
}

#[test]
fn distributions_are_those_of_the_host() {
    let Some(mut stage) = stage() else { return };
    let (uniform, normal) =
        (Draw::Uniform { low: -1.0, high: 3.0 }, Draw::Normal { mean: 0.5, sd: 2.0 });
    for dtype in Dtype::ALL.into_iter().filter(|dtype| dtype.is_float()) {
        let found = drawn(&mut stage, &uniform, dtype, None, 5);
        let (mean, sd) = mean_and_sd(&found);
        assert!(found.iter().all(|v| (-1.0..=3.0).contains(v)), "{dtype:?}");
        assert!((mean - 1.0).abs() < 0.05 && (sd - 1.1547).abs() < 0.05, "{dtype:?} {mean} {sd}");
        let found = drawn(&mut stage, &normal, dtype, None, 6);
        let (mean, sd) = mean_and_sd(&found);
        assert!((mean - 0.5).abs() < 0.1 && (sd - 2.0).abs() < 0.1, "{dtype:?} {mean} {sd}");
        let beyond = found.iter().filter(|v| (**v - 0.5).abs() > 4.0).count() as f64;
        assert!((0.03..0.06).contains(&(beyond / found.len() as f64)), "{dtype:?} {beyond}");
        let other = drawn(&mut stage, &normal, dtype, None, 7);
        assert_ne!(found, other);
        assert_eq!(found, drawn(&mut stage, &normal, dtype, None, 6));
    }
    for dtype in Dtype::ALL.into_iter().filter(|dtype| !dtype.is_float()) {
        let high = if dtype == Dtype::Bool { 1 } else { 100 };
        let integers = Draw::Integers { low: 0, high };
        let found = drawn(&mut stage, &integers, dtype, None, 8);
        let seen: std::collections::BTreeSet<i64> = found.iter().map(|v| *v as i64).collect();
        assert_eq!(seen.len() as i64, high + 1, "{dtype:?}");
        assert_eq!((seen.first(), seen.last()), (Some(&0), Some(&high)));
    }
}

#[test]
fn hostile_draws_have_the_magnitudes_of_the_host() {
    let Some(mut stage) = stage() else { return };
    let hostile =
        [Draw::Denormals, Draw::Large { full: true }, Draw::Mixed, Draw::Cancelling, Draw::Zeros];
    for dtype in [Dtype::F64, Dtype::F32, Dtype::F16, Dtype::Bf16, Dtype::F8E4m3, Dtype::I32] {
        for draw in &hostile {
            let found = drawn(&mut stage, draw, dtype, None, 3);
            let mut bytes = vec![0; found.len() * dtype.bytes()];
            karve_numerics::draw::fill(draw, dtype, 3, 2, &mut bytes);
            let mut wanted = Vec::new();
            tensor::to_f64(dtype, &bytes, &mut wanted);
            let ends = |values: &[f64]| {
                let magnitudes = || values.iter().map(|v| v.abs());
                [magnitudes().fold(0.0, f64::max), magnitudes().fold(f64::MAX, f64::min)]
            };
            let negative = |values: &[f64]| values.iter().filter(|v| **v < 0.0).count() as f64;
            let same = ends(&found)
                .iter()
                .zip(ends(&wanted))
                .all(|(a, b)| *a == b || (a / b > 0.5 && a / b < 2.0) || a.max(b) < 1e-30);
            assert!(same, "{draw:?} {dtype:?}: {:?} instead of {:?}", ends(&found), ends(&wanted));
            let apart = (negative(&found) - negative(&wanted)).abs() / found.len() as f64;
            assert!(apart < 0.03, "{draw:?} {dtype:?}: {apart}");
        }
    }
}

#[test]
fn patterns_are_those_of_the_host() {
    let Some(mut stage) = stage() else { return };
    let normal = Draw::Normal { mean: 0.0, sd: 1.0 };
    for (dtype, pattern) in [Dtype::F32, Dtype::F16, Dtype::Bf16]
        .into_iter()
        .flat_map(|dtype| InputPattern::ALL.map(|pattern| (dtype, pattern)))
    {
        let draw = match pattern {
            InputPattern::Masks => Draw::Integers { low: 0, high: 1 },
            _ => normal.clone(),
        };
        let found = drawn(&mut stage, &draw, dtype, Some(pattern), 11);
        let rows: Vec<&[f64]> = found.chunks(ROW).collect();
        let distinct = |row: &[f64]| {
            let bits = row.iter().map(|v| v.to_bits());
            bits.collect::<std::collections::BTreeSet<u64>>().len()
        };
        let large = found.iter().filter(|v| v.abs() > 20.0).count();
        let good = match pattern {
            InputPattern::Outliers => (1..=8).contains(&large) || dtype == Dtype::F16,
            InputPattern::Prefix => found[..found.len() / 4].iter().all(|v| v.abs() < 8.0),
            InputPattern::Scaled => mean_and_sd(&found).1 > 1.0,
            InputPattern::Lane => dtype == Dtype::F16 || large.is_multiple_of(found.len() / 32),
            InputPattern::Ties => rows.iter().all(|row| distinct(row) <= 6),
            InputPattern::Clusters => rows.iter().all(|row| distinct(row) <= 96),
            InputPattern::Cancellation => rows.iter().all(|row| {
                let sum: f64 = row.iter().sum();
                let all: f64 = row.iter().map(|v| v.abs()).sum();
                sum.abs() < 0.3 * all
            }),
            InputPattern::Repeated => {
                let texts = rows.iter().map(|row| format!("{row:?}"));
                texts.collect::<std::collections::BTreeSet<_>>().len() <= 4
            }
            InputPattern::Sorted => {
                rows.iter().all(|row| row.is_sorted() || row.iter().rev().is_sorted())
            }
            InputPattern::Zeros => {
                let all = rows.iter().filter(|row| row.iter().all(|v| *v == 0.0)).count();
                (20..90).contains(&all) && rows.iter().any(|row| row.iter().all(|v| *v != 0.0))
            }
            // In no mixture, and only on the host.
            InputPattern::NonFinite | InputPattern::Extreme => false,
            InputPattern::Ends | InputPattern::Alike => false,
            InputPattern::Masks => {
                rows.iter().any(|row| row.windows(2).filter(|pair| pair[0] != pair[1]).count() == 1)
            }
        };
        assert!(good, "{pattern:?} {dtype:?}: {:?}", rows[3]);
    }
}

#[test]
fn comparisons_are_those_of_the_host() {
    let Some(mut stage) = stage() else { return };
    let n = 100_003;
    for dtype in [Dtype::F64, Dtype::F32, Dtype::F16, Dtype::Bf16, Dtype::F8E4m3, Dtype::F8E5m2] {
        let mut bytes = vec![0; n * dtype.bytes()];
        let normal = Draw::Normal { mean: 0.1, sd: 1.0 };
        karve_numerics::draw::fill(&normal, dtype, 1, 1, &mut bytes);
        let mut truth = Vec::new();
        tensor::to_f64(dtype, &bytes, &mut truth);
        truth.iter_mut().enumerate().for_each(|(i, v)| *v *= 1.0 + 1e-3 * (i % 7) as f64);
        (truth[5], truth[500], truth[900]) = (f64::NAN, 1e300, f64::INFINITY);
        let mut changed = bytes.clone();
        tensor::from_f64(dtype, &[f64::NAN], &mut changed[10 * dtype.bytes()..][..dtype.bytes()]);
        let mut wide = vec![0; 8 * n];
        tensor::from_f64(Dtype::F64, &truth, &mut wide);
        let (out, reference) = (put(&stage, dtype, &changed), put(&stage, Dtype::F64, &wide));
        let mut out_values = Vec::new();
        tensor::to_f64(dtype, &changed, &mut out_values);
        for rules in [AccuracyRuleSet::Default, AccuracyRuleSet::Bitwise] {
            let tolerance = rules.tolerance(dtype);
            let found = stage.measure(out, reference, &tolerance).expect("stats");
            let wanted = accuracy::measure(&out_values, &truth, &tolerance);
            let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * a.abs().max(b.abs());
            assert!(close(found.rms, wanted.rms), "{dtype:?} {found:?} {wanted:?}");
            assert!(close(found.max_ulp, wanted.max_ulp), "{dtype:?} {found:?} {wanted:?}");
            assert!(close(found.max_excess, wanted.max_excess), "{found:?} {wanted:?}");
            assert!(close(found.cosine, wanted.cosine), "{found:?} {wanted:?}");
            assert!(close(found.out_sd, wanted.out_sd), "{found:?} {wanted:?}");
            let counts = |s: &accuracy::ErrorStats| {
                (s.mismatched, s.first_bad, s.nan_extra, s.nan_missing, s.inf_mismatch)
            };
            assert_eq!(counts(&found), counts(&wanted), "{dtype:?}");
        }
        let plain = put(&stage, dtype, &bytes);
        let zero = accuracy::ErrorStats { scale: 1.0, ..Default::default() };
        let bound = CrossBound::from(&zero, &zero, dtype);
        for (a, b) in [(&bytes, &bytes), (&changed, &bytes)] {
            let same = std::ptr::eq(a, b);
            let first = if same { plain } else { out };
            let found = stage.agree(&[[first, plain]; 2], &[bound; 2]).expect("results");
            assert_eq!(found[0], found[1]);
            let found = found[0];
            assert_eq!(found, accuracy::agree(a, b, dtype, &bound), "{dtype:?}");
            assert_eq!(found.agrees, same);
        }
    }
}

#[test]
fn types_are_converted_as_on_the_host() {
    let Some(mut stage) = stage() else { return };
    for dtype in Dtype::ALL {
        let edges = [0.0, -0.0, 1.0, -1.5, 448.0, 465.0, 57_344.0, 61_440.0, 65_504.0, 65_520.0];
        let small = [2.0_f64.powi(-9), 2.0_f64.powi(-10), 2.0_f64.powi(-17), 1e-8, 0.3, 0.7];
        let all = (0..4_000).map(|i| (f64::from(i) - 2_000.0) * 0.037);
        let values: Vec<f64> = edges.into_iter().chain(small).chain(all).collect();
        let mut wide = vec![0; 8 * values.len()];
        tensor::from_f64(Dtype::F64, &values, &mut wide);
        let from = put(&stage, Dtype::F64, &wide);
        let mut wanted = vec![0; values.len() * dtype.bytes()];
        tensor::from_f64(dtype, &values, &mut wanted);
        let to = put(&stage, dtype, &vec![0; wanted.len()]);
        stage.convert(&[TensorCopy { from, to: to.at, dtype, nudge: None }]).expect("a copy");
        let found = get(&stage, to);
        let width = dtype.bytes();
        let differs = |i: &usize| found[i * width..][..width] != wanted[i * width..][..width];
        let wrong: Vec<f64> = (0..values.len()).filter(differs).map(|i| values[i]).collect();
        let is_integer = !dtype.is_float();
        assert!(wrong.is_empty() || is_integer, "{dtype:?}: {wrong:?}");
    }
}

#[test]
fn a_checksum_shows_a_change_of_one_bit() {
    let Some(mut stage) = stage() else { return };
    let mut bytes = vec![7; 100_001];
    let tensor = put(&stage, Dtype::U8, &bytes);
    let part = |key| KeyedBytes { at: tensor.at, bytes: tensor.count, key };
    let before = stage.checksums(&[part(1), part(2), part(1)]).expect("sums");
    assert_eq!(before[0], before[2]);
    assert_ne!(before[0], before[1]);
    bytes[100_000] ^= 1;
    stage.gpu().to_device(tensor.at, &bytes).expect("a copy");
    let after = stage.checksums(&[part(1), part(2)]).expect("sums");
    assert!(before[0] != after[0] && before[1] != after[1]);
    stage.randomize(&[part(3)]).expect("random bytes");
    let filled = get(&stage, tensor);
    let share = filled.iter().filter(|byte| **byte < 128).count() as f64 / 100_001.0;
    assert!((0.49..0.51).contains(&share), "{share}");
}

/// Prints how fast the stage is: for the notes of a release, not a bound.
#[test]
fn figures() {
    let Some(mut stage) = stage() else { return };
    println!("{:?}", stage.facts());
    let (dtype, count, calls) = (Dtype::F16, 2_u64 * 2048 * 2048, 20);
    let normal = Draw::Normal { mean: 0.0, sd: 1.0 };
    let bytes = count * 2;
    let room = stage.gpu().alloc(bytes * calls).expect("memory");
    let other = stage.gpu().alloc(bytes * calls).expect("memory");
    let of = |seed, pattern: Option<InputPattern>| {
        let target = |pattern| PatternTarget { pattern, hostile: None, dtype, row: 2048 };
        let pattern = pattern.map(target);
        let request = ElementRequest { draw: &normal, pattern, dtype, seed, stream: 0, count };
        ElementDraw::of(&request).expect("a draw")
    };
    let mut timed = |what: &str, run: &mut dyn FnMut(&mut GpuStage)| {
        run(&mut stage);
        stage.gpu().synchronize().expect("an end");
        let start = Instant::now();
        (0..10).for_each(|_| run(&mut stage));
        stage.gpu().synchronize().expect("an end");
        let each = start.elapsed().as_secs_f64() / 10.0;
        let speed = (bytes * calls) as f64 / each / 1e9;
        println!("{what:<12} {:>8.3} ms, {speed:>6.0} GB/s", each * 1e3);
    };
    for pattern in [None, Some(InputPattern::Ties), Some(InputPattern::Sorted)] {
        let list: Vec<TensorDraw> = (0..calls)
            .map(|i| TensorDraw { at: room + i * bytes, count, draw: of(i, pattern) })
            .collect();
        timed(&format!("draw {pattern:?}"), &mut |stage| stage.draw(&list).expect("a draw"));
    }
    let parts: Vec<KeyedBytes> =
        (0..calls).map(|i| KeyedBytes { at: room + i * bytes, bytes, key: i }).collect();
    timed("checksum", &mut |stage| drop(stage.checksums(&parts).expect("sums")));
    timed("randomize", &mut |stage| stage.randomize(&parts).expect("bytes"));
    timed("copy", &mut |stage| stage.gpu().copy(other, room, bytes * calls).expect("a copy"));
    let tensor = |at| GpuTensor { at, dtype, count: count * calls };
    let zero = accuracy::ErrorStats { scale: 1.0, ..Default::default() };
    let bound = CrossBound::from(&zero, &zero, dtype);
    timed("agree", &mut |stage| {
        assert!(stage.agree(&[[tensor(room), tensor(other)]], &[bound]).expect("x")[0].agrees);
    });
    timed("canary", &mut |stage| assert!(stage.canary().expect("an end") > Duration::ZERO));
}

#[test]
fn a_device_has_another_number_where_fewer_are_visible() {
    assert_eq!(number_among(None, None), 0);
    assert_eq!(number_among(None, Some("2,3")), 2);
    assert_eq!(number_among(Some("2,3"), None), 0);
    assert_eq!(number_among(Some("2, 3"), Some("3")), 1);
    assert_eq!(number_among(Some("GPU-a,GPU-b"), Some("GPU-b")), 1);
}
