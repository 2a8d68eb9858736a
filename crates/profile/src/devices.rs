//! Peak figures of devices, from a file that lists every figure under its source.
//!
//! karve ships `crates/karve/data/devices.toml`. A `devices.toml` in the user's configuration and
//! one next to `karve.toml` add devices and override single figures; the nearest wins. A device is
//! found only by its full name: "RTX 4090 D" is not an RTX 4090.

use karve_numerics::roof::DevicePeaks;
use karve_os::error::{CommandError, Result};
use karve_os::files;
use karve_os::text::safe;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The name of a device file.
pub const FILE: &str = "devices.toml";

/// The devices that karve ships.
const BUILT_IN: &str = include_str!("../data/devices.toml");

/// Maximum size of a file, in bytes.
const BYTES_MAX: u64 = 1 << 20;
/// Maximum number of devices in a file.
const DEVICES_MAX: usize = 1_000;
/// Maximum number of characters in a name, an alias, a word or a source.
const TEXT_MAX: usize = 120;
/// Maximum number of names, words and groups of figures of one device.
const LIST_MAX: usize = 64;

/// What every processor of a family has in common.
const CPU_WORDS: [&str; 4] = ["cpu", "x86", "arm", "aarch64"];

/// A numeric property of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum DeviceFigure {
    Fp64,
    Fp64Tensor,
    Fp32,
    Tf32,
    Bf16,
    Fp16,
    Fp8,
    Fp4,
    MemoryRate,
    Memory,
    Cache,
    Units,
    Shared,
    Registers,
    Clock,
    Fp64PerTick,
    Fp32PerTick,
    Bf16PerTick,
}

/// Every figure with its key, and its smallest and largest plausible value.
const FIGURES: [(DeviceFigure, &str, f64, f64); 18] = [
    (DeviceFigure::Fp64, "fp64", 1e6, 1e18),
    (DeviceFigure::Fp64Tensor, "fp64_tensor", 1e6, 1e18),
    (DeviceFigure::Fp32, "fp32", 1e6, 1e18),
    (DeviceFigure::Tf32, "tf32", 1e6, 1e18),
    (DeviceFigure::Bf16, "bf16", 1e6, 1e18),
    (DeviceFigure::Fp16, "fp16", 1e6, 1e18),
    (DeviceFigure::Fp8, "fp8", 1e6, 1e18),
    (DeviceFigure::Fp4, "fp4", 1e6, 1e18),
    (DeviceFigure::MemoryRate, "memory_rate", 1e6, 1e15),
    (DeviceFigure::Memory, "memory", 1e6, 1e15),
    (DeviceFigure::Cache, "cache", 1e3, 1e12),
    (DeviceFigure::Units, "units", 1.0, 1e6),
    (DeviceFigure::Shared, "shared", 1e3, 1e9),
    (DeviceFigure::Registers, "registers", 1.0, 1e9),
    (DeviceFigure::Clock, "clock", 1e6, 1e11),
    (DeviceFigure::Fp64PerTick, "fp64_per_tick", 1.0, 1e6),
    (DeviceFigure::Fp32PerTick, "fp32_per_tick", 1.0, 1e6),
    (DeviceFigure::Bf16PerTick, "bf16_per_tick", 1.0, 1e6),
];

/// Peaks derived from cores, clock and operations per core and cycle.
const BY_TICKS: [(DeviceFigure, DeviceFigure); 3] = [
    (DeviceFigure::Fp64, DeviceFigure::Fp64PerTick),
    (DeviceFigure::Fp32, DeviceFigure::Fp32PerTick),
    (DeviceFigure::Bf16, DeviceFigure::Bf16PerTick),
];

impl DeviceFigure {
    /// Its key in a file.
    pub fn name(self) -> &'static str {
        let row = FIGURES.iter().find(|row| row.0 == self);
        row.map_or("", |row| row.1)
    }

    /// The figure of a key.
    pub fn by_name(name: &str) -> Option<Self> {
        FIGURES.iter().find(|row| row.1 == name).map(|row| row.0)
    }
}

/// A figure with the source it was read in.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SourcedFigure {
    /// In operations, bytes or cycles per second, or a count.
    pub value: f64,
    /// Where it was read, or what it is derived from.
    pub source: String,
}

/// What sort of device it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceKind {
    /// The processor of a host.
    Cpu,
    /// A graphics processor, or another accelerator.
    Gpu,
}

/// One device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviceSpec {
    /// Its name.
    pub name: String,
    /// What sort of device it is.
    pub kind: DeviceKind,
    /// The compilers' name for its instruction set.
    pub arch: String,
    /// Other names, such as the ones that the vendor's tools print.
    pub aliases: Vec<String>,
    /// Words for the scopes of knowledge.
    pub scope: Vec<String>,
    /// Its known figures.
    pub figures: BTreeMap<DeviceFigure, SourcedFigure>,
}

impl DeviceSpec {
    /// A figure, if it is known or can be derived from others.
    pub fn figure(&self, figure: DeviceFigure) -> Option<SourcedFigure> {
        if let Some(known) = self.figures.get(&figure) {
            return Some(known.clone());
        }
        let (_, per_tick) = BY_TICKS.iter().find(|(of, _)| *of == figure)?;
        let value = |figure| self.figures.get(&figure).map(|known: &SourcedFigure| known.value);
        let per_tick_value = value(*per_tick)?;
        Some(SourcedFigure {
            value: value(DeviceFigure::Units)? * value(DeviceFigure::Clock)? * per_tick_value,
            source: format!("units x clock x {}", per_tick.name()),
        })
    }

    /// Its peak for an element type, such as `fp32`.
    pub fn peaks(&self, element: DeviceFigure) -> DevicePeaks {
        DevicePeaks {
            flops: self.figure(element).map(|known| known.value),
            bytes: self.figure(DeviceFigure::MemoryRate).map(|known| known.value),
        }
    }

    /// Whether a word describes it: its architecture, or a word of its scope; for a model name its
    /// number is enough.
    fn matches_word(&self, word: &str) -> bool {
        let number = word.len() >= 4 && word.bytes().all(|byte| byte.is_ascii_digit());
        let is = |own: &String| own == word || number && own.ends_with(word);
        self.arch == word || self.scope.iter().any(is)
    }

    /// The words of its scope that other devices may share: not the model.
    fn kind_words(&self) -> BTreeSet<&str> {
        let model = plain(&self.name);
        let words = self.scope.iter().filter(|word| !model.contains(&plain(word)));
        words.chain([&self.arch]).map(String::as_str).collect()
    }

    fn is_called(&self, name: &str) -> bool {
        let wanted = plain(name);
        let names = std::iter::once(&self.name).chain(&self.aliases);
        names.into_iter().any(|own| plain(own) == wanted)
    }
}

/// All known devices.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceCatalog {
    list: Vec<DeviceSpec>,
}

impl DeviceCatalog {
    /// The devices that karve ships.
    pub fn built_in() -> Result<Self> {
        let mut devices = Self::default();
        devices.add(BUILT_IN, "the built-in devices.toml")?;
        Ok(devices)
    }

    /// The devices that karve ships, plus the files of the user and of the project.
    pub fn load(project: Option<&Path>) -> Result<Self> {
        let mut devices = Self::built_in()?;
        let own = user_file(std::env::var_os("XDG_CONFIG_HOME"), std::env::var_os("HOME"));
        let of_project = project.map(|dir| dir.join(FILE));
        for path in own.into_iter().chain(of_project) {
            if !path.exists() {
                continue;
            }
            let text = files::read_text(&path, BYTES_MAX).map_err(|cause| {
                CommandError::usage(format!("cannot read {}", path.display()))
                    .cause(cause)
                    .hint(format!("fix or remove {}", path.display()))
            })?;
            devices.add(&text, &path.display().to_string())?;
        }
        Ok(devices)
    }

    /// All of them, in file order.
    pub fn all(&self) -> &[DeviceSpec] {
        &self.list
    }

    /// The device with a name or an alias; case, spaces and punctuation are ignored.
    pub fn find(&self, name: &str) -> Option<&DeviceSpec> {
        self.list.iter().find(|device| device.is_called(name))
    }

    /// Words for the scopes of knowledge that apply to a device, given its name as written
    /// somewhere: all words of the device with that name; else, word by word, those shared by all
    /// devices that the word describes. Processors of one family may differ.
    pub fn words(&self, name: &str) -> BTreeSet<String> {
        if let Some(device) = self.find(name) {
            return device.scope.iter().chain([&device.arch]).cloned().collect();
        }
        let mut words = BTreeSet::new();
        for word in spoken(name) {
            let mut reported = self.list.iter().filter(|device| device.matches_word(&word));
            let Some(first) = reported.next() else {
                continue;
            };
            let mut shared = first.kind_words();
            let mut gpus = first.kind == DeviceKind::Gpu;
            for device in reported {
                shared = &shared & &device.kind_words();
                gpus &= device.kind == DeviceKind::Gpu;
            }
            shared.retain(|word| gpus || CPU_WORDS.contains(word));
            words.extend(shared.into_iter().map(str::to_owned));
            words.insert(word);
        }
        words
    }

    /// The device with a name that the user gave.
    pub fn named(&self, name: &str) -> Result<&DeviceSpec> {
        self.find(name).ok_or_else(|| {
            let names: Vec<&str> = self.list.iter().map(|d| d.name.as_str()).collect();
            let known = safe(&names.join(", "), 2_000);
            CommandError::usage(format!("there is no device {:?}", safe(name, TEXT_MAX)))
                .hint(format!("--device takes one of these: {known}"))
                .hint("add others in a devices.toml next to karve.toml; see docs/roofline.md")
        })
    }

    /// Adds the devices in a text, and overrides figures of existing ones.
    pub fn add(&mut self, text: &str, file: &str) -> Result<()> {
        let written: DeviceCatalogTable = toml::from_str(text).map_err(|cause| {
            let cause = cause.to_string();
            CommandError::usage(format!("cannot read {file}"))
                .cause(safe(cause.trim(), 400))
                .hint("docs/roofline.md shows what a devices.toml looks like")
        })?;
        if written.device.len() > DEVICES_MAX {
            return Err(bad(file, "device", "are too many"));
        }
        for (index, device) in written.device.into_iter().enumerate() {
            let device = device.checked(file, index)?;
            match self.list.iter_mut().find(|own| own.is_called(&device.name)) {
                Some(own) => own.overridden_by(device),
                None => self.list.push(device),
            }
        }
        Ok(())
    }
}

impl DeviceSpec {
    fn overridden_by(&mut self, other: Self) {
        self.kind = other.kind;
        if !other.arch.is_empty() {
            self.arch = other.arch;
        }
        for alias in other.aliases {
            if !self.aliases.contains(&alias) {
                self.aliases.push(alias);
            }
        }
        if !other.scope.is_empty() {
            self.scope = other.scope;
        }
        self.figures.extend(other.figures);
    }
}

/// Letters and digits only, in lower case: tools differ in everything else. A plus sign
/// distinguishes models.
fn plain(name: &str) -> String {
    let lower = name.to_lowercase().replace("(r)", "").replace("(tm)", "");
    let counts = |c: &char| c.is_alphanumeric() || *c == '+';
    lower.chars().filter(counts).collect()
}

/// The words of a name, and each joined with the next: some write "RTX 4090".
fn spoken(name: &str) -> Vec<String> {
    let lower = name.to_lowercase();
    let words = lower.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).take(LIST_MAX).collect();
    let pairs = words.windows(2).map(<[&str]>::concat);
    let single = words.iter().map(|word| (*word).to_owned());
    single.chain(pairs).collect()
}

/// The path of the user's own file.
fn user_file(
    config: Option<std::ffi::OsString>,
    home: Option<std::ffi::OsString>,
) -> Option<PathBuf> {
    let set = |value: Option<std::ffi::OsString>| value.filter(|value| !value.is_empty());
    let dir = match (set(config), set(home)) {
        (Some(config), _) => PathBuf::from(config),
        (None, Some(home)) => PathBuf::from(home).join(".config"),
        (None, None) => return None,
    };
    dir.is_absolute().then(|| dir.join("karve").join(FILE))
}

fn bad(file: &str, key: &str, what: &str) -> CommandError {
    CommandError::usage(format!("{file}: `{key}` {what}"))
        .hint("docs/roofline.md shows what a devices.toml looks like")
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DeviceCatalogTable {
    #[serde(default)]
    device: Vec<DeviceSpecTable>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DeviceSpecTable {
    name: String,
    kind: DeviceKind,
    #[serde(default)]
    arch: String,
    #[serde(default)]
    aliases: Vec<String>,
    #[serde(default)]
    scope: Vec<String>,
    #[serde(default)]
    figures: Vec<toml::Table>,
}

impl DeviceSpecTable {
    fn checked(self, file: &str, index: usize) -> Result<DeviceSpec> {
        let at = if self.name.is_empty() {
            format!("device.{}", index + 1)
        } else {
            format!("device.{}", safe(&self.name, TEXT_MAX))
        };
        if plain(&self.name).is_empty() {
            return Err(bad(file, &format!("{at}.name"), "has no letter and no digit"));
        }
        for (key, list) in [("aliases", &self.aliases), ("scope", &self.scope)] {
            if list.len() > LIST_MAX || list.iter().any(|text| plain(text).is_empty()) {
                return Err(bad(file, &format!("{at}.{key}"), "are too many, or one is empty"));
            }
        }
        let mut texts = self.aliases.iter().chain(&self.scope);
        let long = |text: &String| text.chars().count() > TEXT_MAX;
        if long(&self.name) || long(&self.arch) || texts.any(long) || self.figures.len() > LIST_MAX
        {
            return Err(bad(file, &at, "is too long"));
        }
        let mut figures = BTreeMap::new();
        for group in self.figures {
            add_group(&mut figures, &group, file, &at)?;
        }
        Ok(DeviceSpec {
            name: self.name,
            kind: self.kind,
            arch: self.arch,
            aliases: self.aliases,
            scope: self.scope,
            figures,
        })
    }
}

/// The figures of one source.
fn add_group(
    figures: &mut BTreeMap<DeviceFigure, SourcedFigure>,
    group: &toml::Table,
    file: &str,
    at: &str,
) -> Result<()> {
    let source = group.get("source").and_then(toml::Value::as_str);
    let source = source.map(|text| text.trim().to_owned()).unwrap_or_default();
    if source.is_empty() || source.chars().count() > TEXT_MAX {
        return Err(bad(file, &format!("{at}.figures.source"), "is missing or too long"));
    }
    for (key, value) in group.iter().filter(|(key, _)| *key != "source") {
        let key_at = format!("{at}.figures.{}", safe(key, TEXT_MAX));
        let Some((figure, _, least, most)) = FIGURES.iter().find(|row| row.1 == key) else {
            return Err(bad(file, &key_at, "is not a known figure"));
        };
        let number = match value {
            toml::Value::Float(value) => Some(*value),
            toml::Value::Integer(value) => Some(*value as f64),
            _ => None,
        };
        let Some(value) = number.filter(|value| (*least..=*most).contains(value)) else {
            let what = format!("must be a number from {least:e} to {most:e}");
            return Err(bad(file, &key_at, &what));
        };
        let known = SourcedFigure { value, source: source.clone() };
        figures.insert(*figure, known);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
