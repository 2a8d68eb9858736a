//! Which contract follows from a signature and from calls.

use super::*;

fn tensor(name: &str, kind: &'static str, shape: &[&str]) -> PlannedArg {
    let shape = Some(shape.iter().map(|extent| (*extent).to_owned()).collect());
    PlannedArg { name: name.into(), kind, dtype: "f32", shape, ..PlannedArg::default() }
}

#[test]
fn what_is_summed_is_what_no_result_has() {
    let matmul = [
        tensor("a", "input", &["m", "k"]),
        tensor("b", "input", &["k", "n"]),
        tensor("c", "output", &["m", "n"]),
    ];
    assert_eq!(reduction_of(&matmul).as_deref(), Some("k"));
    let softmax = [tensor("x", "input", &["m", "n"]), tensor("y", "output", &["m", "n"])];
    assert_eq!(reduction_of(&softmax).as_deref(), Some("n"));
    let axpy = [tensor("x", "input", &["n"]), tensor("y", "inout", &["n"])];
    assert_eq!(reduction_of(&axpy), None);
    let dot = [tensor("x", "input", &["n"]), tensor("result", "output", &["1"])];
    assert_eq!(reduction_of(&dot).as_deref(), Some("n"));
}

fn value(name: &str, dtype: &str, shape: &[u64]) -> ObservedValue {
    let (name, dtype) = (name.to_owned(), dtype.to_owned());
    ObservedValue { name, dtype, shape: Some(shape.to_vec()), ..ObservedValue::default() }
}

fn number(name: &str, value: f64) -> ObservedValue {
    let dtype = if value.fract() == 0.0 { "i64" } else { "f64" };
    let value = Some(value);
    ObservedValue { name: name.into(), dtype: dtype.into(), value, ..ObservedValue::default() }
}

#[test]
fn extents_that_are_always_equal_are_one_parameter() {
    let call = |m: u64, n: u64| ObservedCall {
        args: vec![value("x", "f32", &[m, n]), number("columns", n as f64), number("by", 0.5)],
        results: vec![value("y", "f32", &[m])],
    };
    let (args, cases) = plan_python(&[call(4, 8), call(8, 8), call(4, 8)]).expect("a plan");
    let shapes: Vec<_> = args.iter().map(|arg| (arg.kind, arg.shape.clone())).collect();
    let named = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
    let expected = [
        ("input", named(&["M", "N"])),
        ("scalar", None),
        ("scalar", None),
        ("output", named(&["M"])),
    ];
    assert_eq!(shapes, expected);
    assert_eq!(args[1].value.as_deref(), Some("N"));
    assert_eq!(args[2].value.as_deref(), Some("0.5"));
    assert_eq!(cases, ["M=4,N=8", "M=8,N=8"]);
}

#[test]
fn calls_that_no_contract_can_make_are_refused() {
    let alone =
        |args, results| plan_python(&[ObservedCall { args, results }]).expect_err("a reason");
    let x = || value("x", "f32", &[4]);
    assert!(alone(vec![x()], vec![number("y", 0.5)]).contains("returns a number"));
    assert!(alone(vec![x()], Vec::new()).contains("no array"));
    assert!(alone(vec![value("x", "list", &[4])], vec![x()]).contains("x is a list"));
    assert!(plan_python(&[]).expect_err("a reason").contains("not called"));
    let changed = ObservedValue { changed: true, ..x() };
    let calls = [ObservedCall { args: vec![changed], results: Vec::new() }];
    assert_eq!(plan_python(&calls).expect("a plan").0[0].kind, "inout");
}

#[test]
fn what_the_user_gives_is_read_and_checked() {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let given = GivenArgs::parse(&words(&["x=n, m"]), &words(&["lda=2*n"])).expect("arguments");
    assert_eq!(given.shapes["x"], ["n", "m"]);
    assert_eq!(given.values["lda"], "2*n");
    assert!(GivenArgs::parse(&words(&["x"]), &[]).is_err());
    assert!(GivenArgs::parse(&words(&["=n"]), &[]).is_err());
    let source = "void f(int n, const float *x, int lda) {}";
    let signature = karve_audit::signature("k.c", source, "f").expect("a signature");
    assert_eq!(given.unknown(&signature), None);
    assert_eq!(sizes_of(&signature, &given), ["n"]);
    let other = GivenArgs::parse(&words(&["z=n"]), &[]).expect("arguments");
    assert_eq!(other.unknown(&signature), Some("z"));
}
