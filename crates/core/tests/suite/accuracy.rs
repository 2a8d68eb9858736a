//! Honest kernels are not flagged, whatever they are compared with; dishonest ones are.
//!
//! `cargo test --release -p karve-core --test suite accuracy:: -- --ignored --nocapture` runs the
//! long sweep and prints a table.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    unreachable_pub,
    reason = "a test says so when it breaks"
)]

#[path = "numbers/kernels.rs"]
mod kernels;

use karve_numerics::accuracy::{AccuracyRuleSet, CrossBound, ErrorStats, OutputInfo, agree, judge};
use karve_numerics::draw::Draw;
use karve_numerics::tensor::Dtype;
use kernels::{CHEATS, Cheat, HONEST, Product, draws, products};

const DTYPES: [Dtype; 4] = [Dtype::F32, Dtype::Bf16, Dtype::F16, Dtype::F64];
const LENGTHS: [usize; 6] = [1, 7, 64, 300, 1_024, 4_096];

/// Seeds of the long sweep, for each draw and each type.
const SEEDS: u64 = 500;

/// What both inputs are drawn from, by name.
type Named = (&'static str, [Draw; 2]);

/// A product with the errors of every honest kernel.
struct Judged {
    product: Product,
    reference: Vec<f64>,
    output: OutputInfo,
    outs: Vec<Vec<u8>>,
    stats: Vec<ErrorStats>,
}

fn judged(draws: &[Draw; 2], dtype: Dtype, k: usize, seed: u64) -> Judged {
    let [product, nudged] = products(draws, dtype, k, seed);
    let reference = product.reference();
    let output = product.output(&nudged, &reference);
    let outs: Vec<Vec<u8>> = HONEST.iter().map(|how| product.honest(*how)).collect();
    let stats =
        outs.iter().map(|out| product.stats(out, &reference, &AccuracyRuleSet::Default)).collect();
    Judged { product, reference, output, outs, stats }
}

/// Comparisons made, and those that flagged an honest kernel.
#[derive(Default)]
struct Tally {
    judged: usize,
    crossed: usize,
    flags: Vec<String>,
    /// The largest share of what honest arithmetic may cost: as root mean square, and at most.
    used: [f64; 2],
}

impl Tally {
    /// Every honest kernel against every other as the incumbent, by every rule set; then on fresh
    /// inputs by the bound that follows.
    fn honest(&mut self, (what, draws): &Named, dtype: Dtype, k: usize, seed: u64) {
        let here = judged(draws, dtype, k, seed);
        let fresh = judged(draws, dtype, k, seed ^ 0x5eed_0000_0000);
        for (c, candidate) in here.stats.iter().enumerate() {
            for (i, incumbent) in here.stats.iter().enumerate() {
                let pair = format!(
                    "{what} {} k={k} seed {seed}: {:?} against {:?}",
                    dtype.name(),
                    HONEST[c],
                    HONEST[i]
                );
                self.judged += 1;
                let said =
                    judge(candidate, Some(incumbent), &AccuracyRuleSet::Default, here.output);
                if let Err(why) = said {
                    self.flags.push(format!("{pair}: {why}"));
                }
                self.crossed += 1;
                let bound = CrossBound::from(candidate, incumbent, here.output);
                let found = agree(&fresh.outs[c], &fresh.outs[i], dtype, &bound);
                if !found.agrees {
                    self.flags.push(format!("{pair}: {found:?} by {bound:?}"));
                }
            }
        }
        for stats in &here.stats {
            let floor = here.output.floor(stats);
            self.used[0] = self.used[0].max(stats.rms / floor.rms);
            self.used[1] = self.used[1].max(stats.max_abs / floor.max);
        }
        for rules in [AccuracyRuleSet::Primus, AccuracyRuleSet::Torch] {
            for out in &here.outs {
                let stats = here.product.stats(out, &here.reference, &rules);
                self.judged += 1;
                if let Err(why) = judge(&stats, None, &rules, here.output) {
                    self.flags.push(format!("{what} {dtype:?} {rules:?}: {why}"));
                }
            }
        }
    }
}

/// Whether a cheat is noticed by the judge, and by the bound on every call, against the least
/// accurate incumbent.
fn noticed(cheat: Cheat, judged: &Judged) -> (bool, bool) {
    let out = judged.product.dishonest(cheat);
    let stats = judged.product.stats(&out, &judged.reference, &AccuracyRuleSet::Default);
    let by_rms = |a: &&ErrorStats, b: &&ErrorStats| a.rms.total_cmp(&b.rms);
    let worst = judged.stats.iter().max_by(by_rms).unwrap();
    let said = judge(&stats, Some(worst), &AccuracyRuleSet::Default, judged.output);
    // The bound is found on honest outputs, before the kernel turned.
    let bound = CrossBound::from(worst, worst, judged.output);
    let found = agree(&out, &judged.outs[0], judged.output.dtype, &bound);
    (said.is_err(), !found.agrees)
}

#[test]
fn no_honest_kernel_is_flagged() {
    let draws = draws();
    let mut tally = Tally::default();
    for seed in 0..500_u64 {
        let named = &draws[seed as usize % draws.len()];
        let dtype = DTYPES[(seed / 16) as usize % DTYPES.len()];
        // The long ones are many; a debug build is slow.
        let k = LENGTHS[(seed / 64 + seed) as usize % if seed % 50 == 0 { 6 } else { 4 }];
        tally.honest(named, dtype, k, seed);
    }
    assert!(tally.flags.is_empty(), "{}", tally.flags.join("\n"));
}

#[test]
fn every_dishonest_kernel_is_noticed() {
    for (what, draw) in &draws()[..3] {
        for seed in 0..5 {
            let f32s = judged(draw, Dtype::F32, 512, seed);
            for cheat in CHEATS {
                let (by_judge, by_bound) = noticed(cheat, &f32s);
                assert!(by_judge && by_bound, "{what} {cheat:?}: {by_judge} {by_bound}");
            }
        }
    }
}

#[test]
#[ignore = "takes minutes, and is for figures"]
fn a_sweep_over_all_draws_types_and_lengths() {
    let mut total = Tally::default();
    for named in &draws() {
        for dtype in DTYPES {
            let mut tally = Tally::default();
            for seed in 0..SEEDS {
                let k = LENGTHS[seed as usize % LENGTHS.len()];
                tally.honest(named, dtype, k, seed);
            }
            println!(
                "honest {:<16} {:<5} {:>7} judged {:>7} crossed {:>4} flagged, {:.2?} used",
                named.0,
                dtype.name(),
                tally.judged,
                tally.crossed,
                tally.flags.len(),
                tally.used,
            );
            total.judged += tally.judged;
            total.crossed += tally.crossed;
            total.flags.extend(tally.flags);
        }
    }
    let (judged, crossed, n_flags) = (total.judged, total.crossed, total.flags.len());
    println!("honest: {judged} judged, {crossed} crossed, {n_flags} flagged");
    for (what, draw) in &draws()[..8] {
        for dtype in DTYPES {
            print_noticed(what, draw, dtype);
        }
    }
    assert!(total.flags.is_empty(), "{}", total.flags[0]);
}

/// How often each cheat was noticed: by the judge, and by the bound on every call.
fn print_noticed(what: &str, draw: &[Draw; 2], dtype: Dtype) {
    let mut counts = vec![[0; 2]; CHEATS.len()];
    for seed in 0..60 {
        let honest = judged(draw, dtype, [64, 1_024, 4_096][seed as usize % 3], seed);
        for (count, cheat) in counts.iter_mut().zip(CHEATS) {
            let (by_judge, by_bound) = noticed(cheat, &honest);
            count[0] += usize::from(by_judge);
            count[1] += usize::from(by_bound);
        }
    }
    for (count, cheat) in counts.iter().zip(CHEATS) {
        println!("cheat {what:<16} {:<5} {cheat:?} {count:?} of 60", dtype.name());
    }
}
