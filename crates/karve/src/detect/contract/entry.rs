//! The files that let karve call a function of a project: an entry point with C's conventions, or
//! a module with the names that a contract expects.

use super::{GivenArgs, PlannedArg};
use karve_audit::{ParamType, Signature};
use karve_numerics::tensor::Dtype;

/// The function that karve calls.
pub const ENTRY: &str = "karve_entry";
/// The argument for what a function returns.
pub(super) const RESULT: &str = "result";

const WRITTEN: &str = "Lets karve call the kernel; written by \"karve contract\".";

/// The entry point of a C or C++ function, and the argument for its result, if it has one.
pub fn entry_of_c(name: &str, signature: &Signature, is_cpp: bool) -> (String, Option<PlannedArg>) {
    let names: Vec<&str> = signature.params.iter().map(|param| param.name.as_str()).collect();
    // By a pointer: an argument may have the name of the function.
    let call = format!("karve_kernel({})", names.join(", "));
    let (returned, params, body) = match &signature.result {
        None => ("void", signature.written.clone(), format!("{call};")),
        Some((_, returned)) => {
            let comma = if names.is_empty() { "" } else { ", " };
            let params = format!("{}{comma}{returned} *{RESULT}", signature.written);
            (returned.as_str(), params, format!("*{RESULT} = {call};"))
        }
    };
    let linkage = |wanted: bool| if is_cpp && wanted { "extern \"C\" " } else { "" };
    let bool_header = if is_cpp { "" } else { "#include <stdbool.h>\n" };
    let written = &signature.written;
    let text = format!(
        "// {WRITTEN}\n{bool_header}#include <stddef.h>\n#include <stdint.h>\n\n{}{returned} \
         {name}({written});\nstatic {returned} (*const karve_kernel)({written}) = \
         {name};\n\n{}void {ENTRY}({params}) {{\n  {body}\n}}\n",
        linkage(signature.is_extern_c),
        linkage(true),
    );
    let result = match &signature.result {
        Some((ParamType::Scalar(dtype), _)) => Some(result_of(*dtype, vec!["1".into()])),
        _ => None,
    };
    (text, result)
}

fn result_of(dtype: Dtype, shape: Vec<String>) -> PlannedArg {
    PlannedArg {
        name: RESULT.into(),
        kind: "output",
        dtype: dtype.name(),
        shape: Some(shape),
        ..PlannedArg::default()
    }
}

/// The entry point of a Rust function, which `import` calls `karve_kernel`. Slices need their
/// lengths, and a returned vector its shape: these become arguments after the others.
pub fn entry_of_rust(
    import: &str,
    signature: &Signature,
    given: &GivenArgs,
) -> Result<(String, Vec<PlannedArg>), String> {
    let mut entry = RustEntry::default();
    for param in &signature.params {
        match param.kind {
            ParamType::Scalar(dtype) => {
                entry.params.push(format!("{}: {}", param.name, dtype.name()));
                entry.passed.push(format!("{} as _", param.name));
            }
            ParamType::Tensor { dtype, is_mut } => {
                entry.slice(&param.name, dtype, is_mut);
                entry.passed.push(param.name.clone());
            }
            ParamType::Unknown => {}
        }
    }
    let mut more = Vec::new();
    let call = format!("karve_kernel({})", entry.passed.join(", "));
    match &signature.result {
        Some((ParamType::Tensor { dtype, .. }, _)) => {
            entry.slice(RESULT, *dtype, true);
            entry.body += &format!("    {RESULT}.copy_from_slice(&{call});\n");
            let shape = given.shapes.get(RESULT).cloned().unwrap_or_default();
            more.push(result_of(*dtype, shape));
        }
        Some((ParamType::Scalar(dtype), _)) => {
            entry.params.push(format!("{RESULT}: *mut {}", dtype.name()));
            entry.body += &format!("    unsafe {{ *{RESULT} = {call} as _ }};\n");
            more.push(result_of(*dtype, vec!["1".into()]));
        }
        Some((ParamType::Unknown, _)) | None => entry.body += &format!("    {call};\n"),
    }
    for name in &entry.slices {
        entry.params.push(format!("{name}_len: usize"));
        more.push(length_of(name, given)?);
    }
    let text = format!(
        "//! {WRITTEN}\n\n{import}\n\n/// The pointers lead to as many elements as the lengths \
         say.\n#[no_mangle]\npub extern \"C\" fn {ENTRY}({}) {{\n{}}}\n",
        entry.params.join(", "),
        entry.body,
    );
    Ok((text, more))
}

/// The parts of an entry point in Rust.
#[derive(Default)]
struct RustEntry {
    params: Vec<String>,
    passed: Vec<String>,
    body: String,
    slices: Vec<String>,
}

impl RustEntry {
    fn slice(&mut self, name: &str, dtype: Dtype, is_mut: bool) {
        let (pointer, part) =
            if is_mut { ("*mut", "from_raw_parts_mut") } else { ("*const", "from_raw_parts") };
        self.params.push(format!("{name}: {pointer} {}", dtype.name()));
        self.body +=
            &format!("    let {name} = unsafe {{ std::slice::{part}({name}, {name}_len) }};\n");
        self.slices.push(name.to_owned());
    }
}

/// The argument with the length of a slice.
fn length_of(name: &str, given: &GivenArgs) -> Result<PlannedArg, String> {
    let shape = given.shapes.get(name);
    let shape = shape.ok_or_else(|| format!("the shape of {name} is not known"))?;
    let factors = shape.iter().map(|one| format!("({one})")).collect::<Vec<_>>();
    Ok(PlannedArg {
        name: format!("{name}_len"),
        kind: "scalar",
        dtype: Dtype::U64.name(),
        value: Some(factors.join("*")),
        ..PlannedArg::default()
    })
}

/// The module with a Python function under the name that a contract expects.
pub fn entry_of_python(module: &str, function: &str) -> String {
    format!(
        "\"\"\"{WRITTEN}\"\"\"\n\nimport os\nimport sys\n\n\
         sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))\n\n\
         from {module} import {function} as kernel_fn\n"
    )
}
