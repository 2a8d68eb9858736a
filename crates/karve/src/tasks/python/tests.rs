//! Tests of reading Python files without running them.

use super::*;
use karve_numerics::draw::Draw;
use karve_numerics::tensor::Dtype;

fn inputs(text: &str) -> Vec<PyValue> {
    let source = PythonSource::parse(text).unwrap();
    match StaticReader::new(&source).result_of("get_inputs", &[]) {
        PyValue::List(values) => values,
        other => panic!("{other:?}"),
    }
}

fn tensor(dtype: Dtype, shape: &[u64], draw: Draw) -> PyValue {
    PyValue::Tensor(DrawnTensor { dtype, shape: shape.to_vec(), draw })
}

#[test]
fn plain_draws_become_tensors() {
    let text = "
import torch
batch, shape = 2 ** 4, (3, 4 * 2)
wide = high = 3
scale = -0.5
def get_inputs():
    torch.manual_seed(3)
    x = torch.rand(batch, *shape)  # a comment
    mask = torch.randint(0, 2, x.shape).bool()
    return [x, mask, torch.randn((batch, high), dtype=torch.float16) * 3 + 1,
            torch.rand(4).cuda() * 2 - 1, torch.randint(0, 10, (5,)), scale, len(shape)]
";
    let want = [
        tensor(Dtype::F32, &[16, 3, 8], Draw::Uniform { low: 0.0, high: 1.0 }),
        tensor(Dtype::Bool, &[16, 3, 8], Draw::Integers { low: 0, high: 1 }),
        tensor(Dtype::F16, &[16, 3], Draw::Normal { mean: 1.0, sd: 3.0 }),
        tensor(Dtype::F32, &[4], Draw::Uniform { low: -1.0, high: 1.0 }),
        tensor(Dtype::I64, &[5], Draw::Integers { low: 0, high: 9 }),
        PyValue::Float(-0.5),
        PyValue::Int(2),
    ];
    assert_eq!(inputs(text), want);
}

#[test]
fn what_has_a_structure_is_unknown_and_named() {
    let text = "
def get_inputs():
    A = torch.triu(torch.rand(4, 4))
    b = torch.randint(0, 2, (4,)).float() * 2 - 1
    x = torch.rand(4)
    x[0] = 1
    return [A, b, x, A @ A, torch.rand(config.size), torch.randint(0, vocab, (2,))]
";
    let found = inputs(text);
    let why: Vec<String> = found.iter().map(PyValue::reason).collect();
    let want = [
        "`torch.triu(torch.rand(4, 4))`",
        "`torch.randint(0, 2, (4,)).float() * 2`",
        "`x[0]`",
        "`torch.triu(torch.rand(4, 4))`",
        "`config.size`",
        "`vocab` is not a constant of the file",
    ];
    assert_eq!(why, want);
    assert!(matches!(found[4], PyValue::Vague(_)) && matches!(found[5], PyValue::Vague(_)));
    assert!(matches!(found[0], PyValue::Unknown(_)));
}

#[test]
fn arguments_and_defaults_reach_the_body() {
    let text = "
def get_inputs(rows: int = 2, columns=3):
    return [torch.randn(rows, columns)]
";
    let source = PythonSource::parse(text).unwrap();
    let mut reader = StaticReader::new(&source);
    let given = [("rows".to_owned(), PyValue::Int(7))];
    let normal = Draw::Normal { mean: 0.0, sd: 1.0 };
    let want = |n| PyValue::List(vec![tensor(Dtype::F32, &[n, 3], normal.clone())]);
    assert_eq!(reader.result_of("get_inputs", &given), want(7));
    assert_eq!(reader.result_of("get_inputs", &[]), want(2));
    assert!(matches!(reader.result_of("none", &[]), PyValue::Unknown(_)));
}

#[test]
fn odd_text_is_unknown_and_never_a_panic() {
    for text in ["def get_inputs(:", "x = 9 ** 9 ** 9\n", "x = 1 << 99", "((((", "é = 'ü'[0]"] {
        let source = PythonSource::parse(text).unwrap();
        let _ = StaticReader::new(&source).result_of("get_inputs", &[]);
    }
    let deep = format!("{}1{}", "(".repeat(500), ")".repeat(500));
    let text = format!("def get_inputs():\n    return {deep}\n");
    let source = PythonSource::parse(&text).unwrap();
    let value = StaticReader::new(&source).result_of("get_inputs", &[]);
    assert!(matches!(value, PyValue::Unknown(_)), "{value:?}");
}
