//! Searches on measured spaces: those of `testdata/spaces`, which Kernel Tuner wrote, and those of
//! `examples/spaces`, a kernel on a CPU and one on a GPU.

#![allow(clippy::unwrap_used, reason = "a test stops where something unexpected happens")]

use karve::tuner::recorded::RecordedSpace;
use karve::tuner::simulate::SimulatedNoise;
use karve::tuner::{recorded, simulate};
use karve_numerics::search::StrategyKind;
use std::path::Path;

fn spaces() -> Vec<RecordedSpace> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/spaces");
    recorded::load_all(&dir).unwrap()
}

#[test]
fn every_format_gives_a_space() {
    let spaces = spaces();
    let sizes: Vec<(&str, usize)> =
        spaces.iter().map(|space| (space.name.as_str(), space.grid.len())).collect();
    assert_eq!(sizes, [("sum_rows", 14), ("sum_rows_open", 12), ("sum_rows_t4", 14)]);
}

#[test]
fn a_search_finds_the_optimum_once_it_has_tried_every_setting() {
    for space in spaces() {
        for kind in [StrategyKind::Auto, StrategyKind::Random] {
            // More than there is: the search ends by itself.
            let budget = space.grid.len() + 5;
            let played = simulate::play(&space, kind, 7, budget, SimulatedNoise::default());
            let at = format!("{} on {}", kind.name(), space.name);
            assert_eq!(played.readings, space.grid.len(), "{at}");
            assert_eq!(played.fractions.len(), budget, "{at}");
            assert!(played.fractions.is_sorted(), "{at}");
            assert_eq!(played.fractions.last(), Some(&1.0), "{at}");
        }
    }
}

#[test]
fn the_same_run_in_two_formats_is_searched_the_same_way() {
    let spaces = spaces();
    for kind in [StrategyKind::Auto, StrategyKind::Random] {
        let play = |space| simulate::play(space, kind, 3, 10, SimulatedNoise::default()).fractions;
        assert_eq!(play(&spaces[0]), play(&spaces[2]), "{}", kind.name());
    }
}

#[test]
fn on_our_own_spaces_the_model_comes_nearer_to_the_optimum_than_chance() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/spaces");
    let spaces = recorded::load_all(&dir).unwrap();
    let names: Vec<&str> = spaces.iter().map(|space| space.name.as_str()).collect();
    assert_eq!(names, ["stencil-cpu", "triton-matmul-h200"]);
    for space in &spaces {
        let reached = |kind: StrategyKind| {
            let play = |seed| simulate::play(space, kind, seed, 50, SimulatedNoise::default());
            let last = |seed| play(seed).fractions.last().copied().unwrap();
            (1..=5).map(last).sum::<f64>() / 5.0
        };
        let (auto, random) = (reached(StrategyKind::Auto), reached(StrategyKind::Random));
        assert!(auto > random, "{}: {auto} {random}", space.name);
        assert!(auto > 0.95, "{}: {auto}", space.name);
    }
}
