//! Values of `karve.toml` that can be written in more than one way.

use super::source::ConfigSource;
use karve_os::error::Result;
use karve_os::text::shown;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

/// A string, a number or a boolean, kept as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Scalar(pub(super) String);

/// A case: its name, or a table with its name and parameters in the order of their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CaseEntry {
    /// `"M=192,N=192"`.
    Text(String),
    /// `{ name = "odd", M = 129 }`; without a name, it is derived from the parameters.
    Table {
        /// The value of `name`.
        name: Option<String>,
        /// The other keys.
        params: Vec<(String, String)>,
    },
}

/// CPUs by their numbers, or the word `auto`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PinValue {
    /// The word `auto`.
    Auto,
    /// Numbers.
    Cpus(Vec<usize>),
}

/// A number, or the word `none`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum OrNone<T> {
    /// The word `none`.
    None,
    /// A number.
    Number(T),
}

impl<T> OrNone<T> {
    pub(super) fn option(self) -> Option<T> {
        match self {
            Self::None => None,
            Self::Number(number) => Some(number),
        }
    }
}

impl JsonSchema for Scalar {
    fn schema_name() -> Cow<'static, str> {
        "Scalar".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "number", "boolean"] })
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ScalarVisitor;
        impl Visitor<'_> for ScalarVisitor {
            type Value = Scalar;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a number")
            }

            fn visit_str<E: de::Error>(self, value: &str) -> Result<Scalar, E> {
                Ok(Scalar(value.to_owned()))
            }

            fn visit_bool<E: de::Error>(self, value: bool) -> Result<Scalar, E> {
                Ok(Scalar(value.to_string()))
            }

            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Scalar, E> {
                Ok(Scalar(value.to_string()))
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Scalar, E> {
                Ok(Scalar(value.to_string()))
            }

            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Scalar, E> {
                // 1.0 stays 1.0 and 1e-7 stays 1e-7.
                Ok(Scalar(format!("{value:?}")))
            }
        }
        deserializer.deserialize_any(ScalarVisitor)
    }
}

impl JsonSchema for CaseEntry {
    fn schema_name() -> Cow<'static, str> {
        "Case".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "type": "string", "minLength": 1 },
                {
                    "type": "object",
                    "properties": { "name": { "type": "string", "minLength": 1 } },
                    "additionalProperties": { "type": ["string", "number", "boolean"] }
                }
            ]
        })
    }
}

impl<'de> Deserialize<'de> for CaseEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct CaseVisitor;
        impl<'de> Visitor<'de> for CaseVisitor {
            type Value = CaseEntry;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a case in quotes, or a table with its parameters")
            }

            fn visit_str<E: de::Error>(self, value: &str) -> Result<CaseEntry, E> {
                Ok(CaseEntry::Text(value.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<CaseEntry, A::Error> {
                let (mut name, mut params) = (None, Vec::new());
                while let Some(key) = map.next_key::<String>()? {
                    let Scalar(value) = map.next_value()?;
                    if key == "name" {
                        name = Some(value);
                    } else {
                        params.push((key, value));
                    }
                }
                Ok(CaseEntry::Table { name, params })
            }
        }
        deserializer.deserialize_any(CaseVisitor)
    }
}

impl JsonSchema for PinValue {
    fn schema_name() -> Cow<'static, str> {
        "Pin".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let cpu = json_schema!({ "type": "integer", "minimum": 0, "maximum": 8191 });
        json_schema!({
            "anyOf": [
                { "type": "array", "items": cpu, "minItems": 1, "maxItems": 8192 },
                { "type": "string", "enum": ["auto"] }
            ]
        })
    }
}

impl<'de> Deserialize<'de> for PinValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PinVisitor;
        impl<'de> Visitor<'de> for PinVisitor {
            type Value = PinValue;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of CPUs or \"auto\"")
            }

            fn visit_str<E: de::Error>(self, value: &str) -> Result<PinValue, E> {
                if value == "auto" {
                    return Ok(PinValue::Auto);
                }
                Err(E::custom("a list of CPUs or \"auto\" is expected"))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<PinValue, A::Error> {
                let mut cpus = Vec::new();
                while let Some(cpu) = seq.next_element()? {
                    cpus.push(cpu);
                }
                Ok(PinValue::Cpus(cpus))
            }
        }
        deserializer.deserialize_any(PinVisitor)
    }
}

/// The numbers that [`OrNone`] may hold.
pub(super) trait Number: Sized {
    /// Its schema.
    fn schema() -> Schema;
    /// From a whole number.
    fn from_whole(value: i64) -> Option<Self>;
    /// From any number.
    fn from_float(value: f64) -> Option<Self>;
}

impl Number for f64 {
    fn schema() -> Schema {
        json_schema!({ "type": "number" })
    }

    fn from_whole(value: i64) -> Option<Self> {
        i32::try_from(value).ok().map(Self::from)
    }

    fn from_float(value: f64) -> Option<Self> {
        Some(value)
    }
}

impl Number for u32 {
    fn schema() -> Schema {
        json_schema!({ "type": "integer", "minimum": 1, "maximum": 1_000_000 })
    }

    fn from_whole(value: i64) -> Option<Self> {
        Self::try_from(value).ok()
    }

    fn from_float(_: f64) -> Option<Self> {
        None
    }
}

impl<T: Number> JsonSchema for OrNone<T> {
    fn schema_name() -> Cow<'static, str> {
        "NumberOrNone".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [T::schema(), { "type": "string", "enum": ["none"] }] })
    }
}

impl<'de, T: Number> Deserialize<'de> for OrNone<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OrNoneVisitor<T>(PhantomData<T>);
        impl<T: Number> Visitor<'_> for OrNoneVisitor<T> {
            type Value = OrNone<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number or \"none\"")
            }

            fn visit_str<E: de::Error>(self, value: &str) -> Result<OrNone<T>, E> {
                if value == "none" {
                    return Ok(OrNone::None);
                }
                Err(E::custom("a number or \"none\" is expected"))
            }

            fn visit_i64<E: de::Error>(self, value: i64) -> Result<OrNone<T>, E> {
                let number = T::from_whole(value);
                number.map(OrNone::Number).ok_or_else(|| E::custom("the number is out of range"))
            }

            fn visit_f64<E: de::Error>(self, value: f64) -> Result<OrNone<T>, E> {
                let number = T::from_float(value);
                number.map(OrNone::Number).ok_or_else(|| E::custom("a whole number is expected"))
            }
        }
        deserializer.deserialize_any(OrNoneVisitor(PhantomData))
    }
}

/// Environment variables as text.
pub(super) fn env_of(
    source: &ConfigSource<'_>,
    path: &str,
    table: &BTreeMap<String, Scalar>,
) -> Result<BTreeMap<String, String>> {
    let mut env = BTreeMap::new();
    for (name, Scalar(value)) in table {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return Err(source
                .error_at(path, format!("`{}` cannot be set in the environment", shown(name)))
                .hint(format!("write {path} like {{ OMP_NUM_THREADS = \"1\" }}")));
        }
        env.insert(name.clone(), value.clone());
    }
    Ok(env)
}
