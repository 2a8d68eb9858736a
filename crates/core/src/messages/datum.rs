//! A value of a message, as in any data language.

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use std::collections::BTreeMap;
use std::fmt;

/// Whole numbers up to this are written without a fraction.
const WHOLE_MAX: f64 = 9e15;

/// A value.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Datum {
    /// Nothing.
    #[default]
    Null,
    /// True or false.
    Truth(bool),
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Datum>),
    /// Names and values.
    Fields(BTreeMap<String, Datum>),
}

impl Datum {
    /// A text.
    pub fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    /// Names and values.
    pub fn fields<const N: usize>(fields: [(&str, Self); N]) -> Self {
        Self::Fields(fields.map(|(name, value)| (name.to_owned(), value)).into())
    }

    /// The value of a field, if this has fields.
    pub fn get(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Fields(fields) => fields.get(name),
            _ => None,
        }
    }

    /// The text of a field; empty if it has none.
    pub fn str_of(&self, name: &str) -> &str {
        match self.get(name) {
            Some(Self::Text(text)) => text,
            _ => "",
        }
    }

    /// The number of a field.
    pub fn number_of(&self, name: &str) -> Option<f64> {
        match self.get(name) {
            Some(Self::Number(number)) => Some(*number),
            _ => None,
        }
    }

    /// The entries of a field; none if it is not a list.
    pub fn list_of(&self, name: &str) -> &[Self] {
        match self.get(name) {
            Some(Self::List(items)) => items,
            _ => &[],
        }
    }

    /// The texts of a field that is a list of them.
    pub fn texts_of(&self, name: &str) -> Vec<String> {
        let text = |item: &Self| match item {
            Self::Text(text) => Some(text.clone()),
            _ => None,
        };
        self.list_of(name).iter().filter_map(text).collect()
    }
}

impl Serialize for Datum {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Truth(truth) => serializer.serialize_bool(*truth),
            Self::Number(number) if number.fract() == 0.0 && number.abs() < WHOLE_MAX => {
                serializer.serialize_i64(*number as i64)
            }
            Self::Number(number) => serializer.serialize_f64(*number),
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    list.serialize_element(item)?;
                }
                list.end()
            }
            Self::Fields(fields) => {
                let mut map = serializer.serialize_map(Some(fields.len()))?;
                for (name, value) in fields {
                    map.serialize_entry(name, value)?;
                }
                map.end()
            }
        }
    }
}

struct DatumVisitor;

impl<'de> Visitor<'de> for DatumVisitor {
    type Value = Datum;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Datum, E> {
        Ok(Datum::Null)
    }

    fn visit_none<E: Error>(self) -> Result<Datum, E> {
        Ok(Datum::Null)
    }

    fn visit_bool<E: Error>(self, truth: bool) -> Result<Datum, E> {
        Ok(Datum::Truth(truth))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Datum, E> {
        Ok(Datum::Number(number as f64))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Datum, E> {
        Ok(Datum::Number(number as f64))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Datum, E> {
        Ok(Datum::Number(number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Datum, E> {
        Ok(Datum::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Datum, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Datum::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Datum, A::Error> {
        let mut fields = BTreeMap::new();
        while let Some((name, value)) = map.next_entry::<String, Datum>()? {
            if fields.contains_key(&name) {
                let name: String = name.chars().take(40).collect();
                return Err(A::Error::custom(format!("{name:?} appears twice")));
            }
            fields.insert(name, value);
        }
        Ok(Datum::Fields(fields))
    }
}

impl<'de> Deserialize<'de> for Datum {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DatumVisitor)
    }
}
