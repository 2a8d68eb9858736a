//! Layouts of contracts.

use super::*;
use crate::case::CaseSet;
use proptest::prelude::*;
use std::collections::BTreeMap;

pub(super) fn case(params: &[(&str, u64)]) -> Case {
    Case {
        name: "a case".into(),
        params: params
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.to_string()))
            .collect::<BTreeMap<_, _>>(),
        set: CaseSet::Full,
        minor: false,
        halve: None,
    }
}

fn arg(name: &str, dtype: Dtype, kind: ArgKind) -> Arg {
    Arg { name: name.into(), dtype, kind }
}

fn tensor(shape: &[&str]) -> ArgKind {
    ArgKind::Input {
        shape: shape.iter().map(|text| (*text).to_owned()).collect(),
        draw: Draw::Zeros,
    }
}

fn output(shape: &[&str]) -> ArgKind {
    ArgKind::Output { shape: shape.iter().map(|text| (*text).to_owned()).collect() }
}

fn scalar(value: &str) -> ArgKind {
    ArgKind::Scalar { value: value.into(), fixed: false }
}

fn contract(args: Vec<Arg>) -> Contract {
    let path = "build/kernel.so".to_owned();
    Contract {
        kernel: Kernel::Library { path: path.clone(), entry: "f".into() },
        args,
        reference: Reference::Library { path, entry: "g".into(), precision: Precision::Wide },
        accuracy: AccuracyRuleSet::Default,
        reduction: None,
        deterministic: true,
        threads: 1,
        hostile: Vec::new(),
        mixture: Vec::new(),
        shapes: CheckedShapes::default(),
        modules: PythonRuntime::default(),
        work: CallWork::default(),
        setup: None,
        timing: DeviceTiming::default(),
        undeclared: Vec::new(),
    }
}

pub(super) fn product() -> Contract {
    contract(vec![
        arg("m", Dtype::I32, scalar("M")),
        arg("alpha", Dtype::F32, scalar("1/2")),
        arg("a", Dtype::F32, tensor(&["M", "K"])),
        arg("c", Dtype::F32, output(&["M", "2*K"])),
    ])
}

#[test]
fn shapes_and_scalars_follow_the_case() {
    let layout = product().layout(&case(&[("M", 3), ("K", 5)])).expect("a layout");
    assert_eq!(layout.places[0], PlacedArg::Integer(3));
    assert_eq!(layout.places[1], PlacedArg::Float(0.5));
    let PlacedArg::Input(a) = layout.places[2] else {
        panic!("a is read");
    };
    let PlacedArg::Output(c) = layout.places[3] else {
        panic!("c is written");
    };
    assert_eq!((a.elements, a.bytes), (15, 60));
    assert_eq!((c.elements, c.bytes), (30, 120));
    assert_eq!(layout.extents[3], [3, 10]);
}

#[test]
fn a_wide_reference_takes_float64_and_the_same_integers() {
    let case = case(&[("M", 3), ("K", 5)]);
    let wide = product().layout_in(&case, Precision::Wide).expect("a layout");
    assert_eq!(wide.dtypes[0], Dtype::I32);
    assert_eq!(wide.dtypes[2], Dtype::F64);
    let PlacedArg::Output(c) = wide.places[3] else {
        panic!("c is written");
    };
    assert_eq!(c.bytes, 240);
}

#[test]
fn what_has_no_size_is_refused_with_its_name() {
    let refuse = |args: Vec<Arg>, part: &str| {
        let why = contract(args).layout(&case(&[("M", 3)])).expect_err("no layout");
        assert!(why.contains(part), "{why}");
    };
    let one = |kind| vec![arg("x", Dtype::F32, kind)];
    refuse(one(tensor(&["N"])), "`x`");
    refuse(one(tensor(&["M/2"])), "not a size");
    refuse(one(tensor(&["0-M"])), "not a size");
    refuse(one(tensor(&["M*1e12"])), "not a size");
    refuse(one(tensor(&["M*1e9", "M*1e3"])), "too large");
    refuse(vec![arg("x", Dtype::I32, scalar("M/2"))], "whole number");
    refuse(vec![arg("x", Dtype::F16, scalar("M"))], "f32 or f64");
    refuse(vec![arg("x", Dtype::F32, scalar("1")); 9], "scalars");
    refuse(vec![arg("x", Dtype::I32, scalar("1")); 17], "pointers");
}

#[test]
fn a_hostile_draw_replaces_that_of_every_floating_point_input() {
    let drawn = product().drawn_as(&Draw::Denormals);
    assert_eq!(drawn.args[2].draw(), Some(&Draw::Denormals));
    assert_eq!(drawn.args[3].draw(), None);
}

proptest! {
    #[test]
    fn tensors_are_aligned_and_stand_between_guards(
        m in 0..200_u64,
        k in 0..200_u64,
        outputs in 1..4_usize,
    ) {
        let mut args = vec![arg("a", Dtype::F16, tensor(&["M", "K"]))];
        let names = ["x", "y", "z"];
        for name in &names[..outputs] {
            args.push(arg(name, Dtype::F32, output(&["M", "K"])));
        }
        let layout = contract(args).layout(&case(&[("M", m), ("K", k)])).expect("a layout");
        let mut end = 0;
        for (_, region) in layout.outputs() {
            prop_assert_eq!(region.offset % ALIGNMENT, 0);
            prop_assert!(region.offset >= end + GUARD_BYTES);
            end = region.offset + region.bytes;
        }
        prop_assert!(layout.output_bytes >= end + GUARD_BYTES);
        prop_assert_eq!(layout.output_bytes % ALIGNMENT, 0);
        // Guards and tensors cover the slot exactly once.
        let guarded: u64 = layout.guards().iter().map(|(from, to)| to - from).sum();
        let written: u64 = layout.outputs().map(|(_, region)| region.bytes).sum();
        prop_assert_eq!(guarded + written, layout.output_bytes);
    }
}

fn drawn_bytes(step: &AliasingStep, index: usize, elements: usize) -> Vec<u8> {
    let mut bytes = vec![0; elements * 4];
    let draw = step.contract.args[index].draw().unwrap();
    // The seed of the call does not matter here.
    crate::draw::fill(draw, Dtype::F32, 5, index as u64, &mut bytes);
    bytes
}

#[test]
fn an_aliasing_check_changes_one_input_a_step_and_some_only_in_part() {
    let drawn = |draw| ArgKind::Input { shape: vec!["n".into()], draw };
    let normal = Draw::Normal { mean: 0.0, sd: 1.0 };
    let contract = contract(vec![
        arg("n", Dtype::I64, scalar("n")),
        arg("a", Dtype::F32, drawn(normal.clone())),
        arg("b", Dtype::F32, drawn(normal)),
        arg("order", Dtype::F32, drawn(Draw::Permutation)),
        arg("zero", Dtype::F32, drawn(Draw::Zeros)),
        arg("c", Dtype::F32, output(&["n"])),
    ]);
    let layout = contract.layout(&case(&[("n", 900)])).unwrap();
    for secret in 0..50 {
        let steps = contract.aliasing_steps(&layout, secret);
        assert_eq!(steps.len(), ALIASING_STEPS);
        let (mut touched, mut few) = ([0; 6], 0);
        for two in steps.windows(2) {
            let differ = |index: &usize| {
                drawn_bytes(&two[0], *index, 900) != drawn_bytes(&two[1], *index, 900)
            };
            let changed: Vec<usize> = (1..5).filter(differ).collect();
            assert_eq!(changed.len(), 1, "{}", two[1].what);
            touched[changed[0]] += 1;
            let old = drawn_bytes(&two[0], changed[0], 900);
            let new = drawn_bytes(&two[1], changed[0], 900);
            let same = old.chunks(4).zip(new.chunks(4)).filter(|(a, b)| a == b);
            let same = same.count();
            assert_eq!(same > 400, changed[0] != 3, "a permutation stays one");
            few += u32::from(same >= 900 - 16);
        }
        assert!(touched[1] > 1 && touched[2] > 1 && touched[3] > 1);
        assert_eq!(touched[4], 0);
        assert!(few >= 2, "{few} changes of a few elements");
        assert_ne!(steps, contract.aliasing_steps(&layout, secret + 1000));
    }
}

#[test]
fn an_aliasing_check_of_nothing_that_varies_is_one_step() {
    let contract = contract(vec![
        arg("zero", Dtype::F32, tensor(&["n"])),
        arg("c", Dtype::F32, output(&["n"])),
    ]);
    let layout = contract.layout(&case(&[("n", 9)])).unwrap();
    assert_eq!(contract.aliasing_steps(&layout, 1).len(), 1);
}

#[test]
fn a_call_in_four_has_a_pattern_and_no_dense_subnormals_are_timed() {
    let mut contract = product();
    contract.hostile = vec![Draw::Denormals, Draw::Large { full: false }];
    contract.mixture = InputPattern::ALL.to_vec();
    for arg in &mut contract.args {
        arg.set_draw(Draw::Normal { mean: 0.0, sd: 1.0 });
    }
    let checked = contract.checked_patterns(7);
    assert!(checked.len() > 8 && checked.iter().any(|c| c.pattern == InputPattern::Lane));
    let all: std::collections::BTreeSet<_> =
        (0..50).flat_map(|secret| contract.timed_patterns(secret)).collect();
    let kinds = |kind| all.iter().filter(|c| c.pattern == kind).count();
    assert_eq!([kinds(InputPattern::Outliers), kinds(InputPattern::Lane)], [2, 1]);
    assert_ne!(contract.timed_patterns(1), contract.timed_patterns(2));
    let timed = contract.timed_patterns(1);
    let n = (0..4_000).filter(|seed| ChosenPattern::of(*seed, &timed).is_some()).count();
    assert!((850..1_150).contains(&n), "{n}");
    contract.mixture.clear();
    assert!(contract.timed_patterns(1).is_empty() && contract.checked_patterns(1).is_empty());
    contract.accuracy = AccuracyRuleSet::Stable;
    assert_eq!(contract.hostile_draws().len(), 3);
}
