//! A task of KernelBench: a file with `Model` and its inputs, which becomes a contract.

use super::{FileListing, ProjectFiles, kernel, render};

/// What the class that a candidate may change is called.
const NEW: &str = "ModelNew";

/// A task, and what is written for it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ModelTask {
    /// The file with the reference.
    pub reference: String,
    /// The file with the kernel.
    pub kernel: String,
    /// The text of the kernel's file, if there is none yet.
    #[serde(skip)]
    pub added: Option<String>,
    /// The operation.
    pub op: String,
    /// The device.
    pub device: String,
    /// What was found, in sentences.
    pub why: Vec<String>,
}

/// The task of a project, if it is one of KernelBench.
pub fn find_model_task(found: &ProjectFiles) -> Option<ModelTask> {
    let files = FileListing(found);
    let is_task = |text: &str| {
        ["class Model(", "def get_inputs(", "def get_init_inputs("]
            .iter()
            .all(|part| text.contains(part))
    };
    let is_wanted = |path: &str| {
        found
            .kernel
            .as_deref()
            .is_none_or(|name| [path, super::name_of(path), super::stem_of(path)].contains(&name))
    };
    let (path, text) = files
        .iter()
        .find(|(path, text)| path.ends_with(".py") && is_task(text) && is_wanted(path))?;
    let new = files.iter().find(|(other, text)| {
        *other != path && other.ends_with(".py") && text.contains(&format!("class {NEW}("))
    });
    let mut why = vec![format!("{path} is a task of KernelBench: Model, and its inputs.")];
    let (kernel, added) = match new {
        Some((other, _)) => {
            why.push(format!("{other} has {NEW}, the kernel."));
            (other.to_owned(), None)
        }
        None => {
            let folder = path.rsplit_once('/').map_or(String::new(), |(dir, _)| format!("{dir}/"));
            why.push(format!("{folder}kernel.py starts as a copy of the reference, called {NEW}."));
            (format!("{folder}kernel.py"), Some(model_as_kernel(text)))
        }
    };
    let op = kernel::operation(path, "");
    let device = "gpu".to_owned();
    Some(ModelTask { reference: path.to_owned(), kernel, added, op, device, why })
}

/// The source of a task with another name of its class: the kernel that a campaign starts from.
pub fn model_as_kernel(text: &str) -> String {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("Model") {
        let end = at + "Model".len();
        let is_whole = !rest[..at].ends_with(is_name) && !rest[end..].starts_with(is_name);
        out.push_str(&rest[..at]);
        out.push_str(if is_whole { NEW } else { "Model" });
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}

/// The text of a `karve.toml` for a task.
pub fn render_model_task(task: &ModelTask) -> String {
    render::with_template(include_str!("models.toml.j2"), task)
}

#[cfg(test)]
mod tests {
    use super::super::tests::found;
    use super::*;

    const TASK: &str = "class Model(nn.Module):\n    def __init__(self):\n        \
        super(Model, self).__init__()\ndef get_inputs(): pass\ndef get_init_inputs(): pass\n";

    #[test]
    fn a_task_becomes_a_contract_with_a_copy_as_its_kernel() {
        let task = find_model_task(&found(&[("level1/23_Softmax.py", TASK)])).unwrap();
        assert_eq!((&*task.kernel, &*task.op), ("level1/kernel.py", "softmax"));
        let added = task.added.as_deref().unwrap();
        assert!(added.contains("class ModelNew(nn.Module)"), "{added}");
        assert!(added.contains("super(ModelNew, self)"), "{added}");
        let text = render_model_task(&task);
        assert!(text.contains("style = \"models\"") && text.contains("from-module"), "{text}");
    }

    #[test]
    fn a_kernel_that_is_there_is_used() {
        let files = [("task.py", TASK), ("mine.py", "class ModelNew(nn.Module): pass")];
        let task = find_model_task(&found(&files)).unwrap();
        assert_eq!((&*task.kernel, task.added), ("mine.py", None));
        assert_eq!(find_model_task(&found(&[("k.py", "class Model(x): pass")])), None);
    }
}
