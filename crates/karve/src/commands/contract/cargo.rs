//! Rust: a crate of Cargo, or a single file.

use super::{ADDED, AddedFiles, ContractTarget, SOURCE_BYTES_MAX};
use crate::commands::project_files;
use crate::detect::contract::{self as plan, ContractPlan, TensorUse, entry_of_rust, plan_native};
use karve_audit::{Param, ParamType};
use karve_os::error::{CommandError, Result, WithContext};
use karve_os::files;

/// The contract of a Rust function.
pub(super) fn of_rust(target: &ContractTarget) -> Result<(ContractPlan, AddedFiles)> {
    let manifest = target.dir.join("Cargo.toml");
    let shapes = uses(target)?;
    let (build, imports, mut added) = match manifest.exists() {
        true => of_crate(target)?,
        false => of_file(target),
    };
    let entry = |import: &str| {
        entry_of_rust(import, &target.signature, &target.given).map_err(|why| {
            CommandError::usage(why).hint("give the shape of what it returns: --shape result=n,m")
        })
    };
    let [(kernel, import), (reference, of_reference)] = imports;
    let (text, more) = entry(&import)?;
    added.push((kernel, text));
    added.push((reference, entry(&of_reference)?.0));
    let mut args = plan_native(&target.signature, &target.given, &shapes);
    args.extend(more);
    let plan = ContractPlan {
        op: target.function.clone(),
        backend: "rust".into(),
        editable: target.file.clone(),
        build: Some(build),
        reduction: plan::reduction_of(&args),
        args,
        ..ContractPlan::default()
    };
    Ok((plan, added))
}

/// Slices know their lengths, so these cannot be seen: the user gives them.
fn uses(target: &ContractTarget) -> Result<Vec<TensorUse>> {
    let is_tensor = |param: &&Param| matches!(param.kind, ParamType::Tensor { .. });
    let one = |param: &Param| {
        let shape = target.given.shapes.get(&param.name).cloned().ok_or_else(|| {
            let missing = target.signature.params.iter().filter(is_tensor);
            let missing = missing.filter(|param| !target.given.shapes.contains_key(&param.name));
            let flags: Vec<String> =
                missing.map(|param| format!("--shape {}=n,m", param.name)).collect();
            CommandError::usage(format!("the shape of {} is not known", param.name))
                .hint(format!("give the extents of every slice: {}", flags.join(" ")))
        })?;
        let is_mut = matches!(param.kind, ParamType::Tensor { is_mut: true, .. });
        let kind = match is_mut {
            true if target.given.inout.contains(&param.name) => "inout",
            true => "output",
            false => "input",
        };
        Ok(TensorUse { shape, kind })
    };
    target.signature.params.iter().filter(is_tensor).map(one).collect()
}

/// The build, where the two entry points are and how they import the function, and other files.
type RustLayout = (String, [(String, String); 2], AddedFiles);

fn of_file(target: &ContractTarget) -> RustLayout {
    let name = crate::detect::name_of(&target.file);
    let import = |path: &str| {
        format!(
            "#[path = \"{path}\"]\nmod source;\nuse source::{} as karve_kernel;",
            target.function
        )
    };
    let line = |entry: &str, into: &str| {
        format!(
            "rustc --edition 2021 --crate-type cdylib -C opt-level=3 -C target-cpu=native \
             -C panic=abort -A warnings -o build/karve/{into}.so {entry}"
        )
    };
    let (kernel, reference) = (format!("{ADDED}/entry.rs"), format!("{ADDED}/reference/entry.rs"));
    let build = format!(
        "mkdir -p build/karve && {} && {}",
        line(&kernel, "kernel"),
        line(&reference, "reference")
    );
    let added = vec![(format!("{ADDED}/reference/{name}"), target.source.clone())];
    let imports = [(kernel, import(&format!("../{}", target.file))), (reference, import(name))];
    (build, imports, added)
}

fn of_crate(target: &ContractTarget) -> Result<RustLayout> {
    let read = |name: &str| files::read_text(&target.dir.join(name), SOURCE_BYTES_MAX);
    let text = read("Cargo.toml").context(|| "cannot read Cargo.toml".into())?;
    let manifest: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        CommandError::usage("Cargo.toml cannot be read")
            .cause(error.message())
            .hint("check it with \"cargo metadata\"")
    })?;
    let name = |table: &str| manifest.get(table)?.get("name")?.as_str().map(str::to_owned);
    let package = name("package").ok_or_else(|| {
        CommandError::usage("Cargo.toml is a workspace without a package")
            .hint("run \"karve contract\" in the directory of the crate: \"cd crates/NAME\"")
    })?;
    let library = name("lib").unwrap_or_else(|| package.replace('-', "_"));
    let import =
        format!("use {library}::{}{} as karve_kernel;", module_path(target)?, target.function);
    let mut added = vec![
        (format!("{ADDED}/Cargo.toml"), entry_manifest(&package, "..", &manifest)),
        (format!("{ADDED}/reference/Cargo.toml"), entry_manifest(&package, "crate", &manifest)),
        (format!("{ADDED}/reference/crate/Cargo.toml"), copied_manifest(&manifest)),
    ];
    // The same versions of dependencies, or cargo would have to look for them.
    if let Ok(lock) = read("Cargo.lock") {
        added.push((format!("{ADDED}/Cargo.lock"), lock.clone()));
        added.push((format!("{ADDED}/reference/Cargo.lock"), lock));
    }
    for path in
        project_files::plain_files(&target.dir).into_iter().filter(|path| path.starts_with("src/"))
    {
        let text = read(&path).context(|| format!("cannot copy {path}"))?;
        added.push((format!("{ADDED}/reference/crate/{path}"), text));
    }
    let line = |manifest: &str, into: &str| {
        format!(
            "cargo build -q --release --manifest-path {manifest} --target-dir build/karve/{into} \
             && cp build/karve/{into}/release/libkarve_entry.so build/karve/{into}.so"
        )
    };
    let build = format!(
        "mkdir -p build/karve && {} && {}",
        line(&format!("{ADDED}/Cargo.toml"), "kernel"),
        line(&format!("{ADDED}/reference/Cargo.toml"), "reference")
    );
    let imports = [
        (format!("{ADDED}/entry.rs"), import.clone()),
        (format!("{ADDED}/reference/entry.rs"), import),
    ];
    Ok((build, imports, added))
}

/// The modules of a file of a crate, such as `kernels::`.
fn module_path(target: &ContractTarget) -> Result<String> {
    let inside = target.file.strip_prefix("src/").and_then(|path| path.strip_suffix(".rs"));
    let path =
        inside.filter(|path| *path != "main" && !path.starts_with("bin/")).ok_or_else(|| {
            CommandError::usage(format!("{} is not part of the crate's library", target.file))
                .hint("move the function to src/lib.rs or one of its modules")
        })?;
    let parts = path.split('/').filter(|part| !matches!(*part, "lib" | "mod"));
    Ok(parts.map(|part| format!("{part}::")).collect())
}

/// The manifest of an entry point, with the profiles of the crate.
fn entry_manifest(package: &str, path: &str, manifest: &toml::Table) -> String {
    let mut own = toml::toml! {
        [package]
        name = "karve-entry"
        version = "0.0.0"
        edition = "2021"
        publish = false

        [lib]
        path = "entry.rs"
        crate-type = ["cdylib"]

        [workspace]
    };
    let mut dependencies = toml::Table::new();
    let mut of_crate = toml::Table::new();
    of_crate.insert("path".into(), path.into());
    dependencies.insert(package.to_owned(), of_crate.into());
    own.insert("dependencies".into(), dependencies.into());
    if let Some(profile) = manifest.get("profile") {
        own.insert("profile".into(), profile.clone());
    }
    toml::to_string(&own).unwrap_or_default()
}

/// The manifest of the copy of a crate: without benchmarks, tests and examples, which are not
/// copied, and with paths that lead to the same places.
fn copied_manifest(manifest: &toml::Table) -> String {
    const KEPT: [&str; 6] = ["package", "lib", "features", "dependencies", "target", "lints"];
    let kept = manifest.iter().filter(|(name, _)| KEPT.contains(&name.as_str()));
    let mut copy: toml::Table = kept.map(|(name, value)| (name.clone(), value.clone())).collect();
    let dependencies = copy.get_mut("dependencies").and_then(toml::Value::as_table_mut);
    for (_, dependency) in dependencies.into_iter().flatten() {
        if let Some(path) = dependency.get_mut("path")
            && let Some(text) = path.as_str()
        {
            *path = format!("../../../{text}").into();
        }
    }
    toml::to_string(&copy).unwrap_or_default()
}
