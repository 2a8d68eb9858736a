//! What is measured: a column, an expression, or one of the named metrics.
//!
//! ```text
//! latency         time of one call, lower is better
//! throughput      work / time
//! combined_step   6*M*N*K / (forward time + backward time)
//! ratio           time of the reference / time
//! ```
//!
//! A named metric becomes an expression over columns, so a charter is complete and nothing needs
//! to be looked up later. `metric.expr` and `[metrics]` take precedence over these four.

use super::contract_file::DeviceName;
use super::file::{ConfigFile, MetricTable};
use super::source::ConfigSource;
use karve_core::charter::{Better, ClockRule, Metric, StepPasses};
use karve_core::score::rate_scale;
use karve_numerics::case::Case;
use karve_numerics::expr::{Expr, parse_expr};
use karve_numerics::roof::{AMOUNT_MAX, AMOUNT_MIN, is_amount};
use karve_os::error::Result;
use karve_os::text::shown;

/// Operations of a forward and a backward pass of a matrix product.
const STEP_WORK: &str = "6*M*N*K";
/// The default columns of a forward and a backward pass.
const PASSES: [&str; 2] = ["Forward Time (ms)", "Backward Time (ms)"];
/// Names that mean karve's own clock.
const OWN_CLOCKS: [&str; 2] = ["wall_time", "cpu_time"];

/// The named metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MetricName {
    Latency,
    Throughput,
    CombinedStep,
    Ratio,
}

/// The metric of a file, with named metrics expanded.
pub(super) fn metric_of(source: &ConfigSource<'_>, file: &ConfigFile) -> Result<Metric> {
    let Some(table) = &file.metric else {
        // The default clock of a contract.
        return Ok(Metric {
            name: OWN_CLOCKS[0].to_owned(),
            unit: "us".to_owned(),
            clocks: clocks_of(file, None),
            ..Metric::default()
        });
    };
    let own = file.metrics.get(&table.name);
    for name in OWN_CLOCKS {
        if file.metrics.contains_key(name) {
            let message = format!("`{name}` is the name of karve's own clock");
            return Err(source
                .error_at(&format!("metrics.{name}"), message)
                .hint("choose another name in [metrics]"));
        }
    }
    let time = time_column(file);
    let named = match (&table.expr, own) {
        (None, None) => MetricName::of(table, time.as_deref()),
        (Some(_), _) | (_, Some(_)) => None,
    };
    refuse_idle_keys(source, table, named)?;
    if let Some(named) = named {
        return named.metric(source, table, time.as_deref());
    }
    let unit = table.unit.clone().or_else(|| own?.unit.clone());
    let mut metric = Metric {
        passes: None,
        name: table.name.clone(),
        unit: unit.unwrap_or_else(|| unit_in(&table.name)),
        better: Better::Lower,
        expr: table.expr.clone().or_else(|| Some(own?.expr.clone())),
        work: table.work.clone().or_else(|| own?.work.clone()),
        bytes: table.bytes.clone(),
        clocks: clocks_of(file, table.clocks),
    };
    metric.better = match table.better.or_else(|| own?.better) {
        Some(better) => better,
        None if metric.seconds_per_unit().is_some() => Better::Lower,
        None if metric.rate_per_unit().is_some() => Better::Higher,
        None => {
            return Err(source
                .error_at("metric", "the key `better` is missing in [metric]")
                .hint("add better = \"lower\" or better = \"higher\" in [metric]"));
        }
    };
    let path = match (&table.expr, own) {
        (None, Some(_)) => format!("metrics.{}.expr", table.name),
        (_, _) => "metric.expr".to_owned(),
    };
    if let Some(text) = &metric.expr {
        let expr = expression(source, &path, text)?;
        if expr.names().is_empty() {
            return Err(source
                .error_at(&path, format!("`{path}` uses no column"))
                .hint("write metric.expr over columns of the output, such as 1e3/`Time (ms)`"));
        }
    }
    Ok(metric)
}

/// Which clocks decide. CPU time says nothing about work on a device.
fn clocks_of(file: &ConfigFile, given: Option<ClockRule>) -> ClockRule {
    let device = file.contract.as_ref().and_then(|contract| contract.device);
    given.unwrap_or(match device {
        Some(DeviceName::Cuda | DeviceName::Hip) => ClockRule::Metric,
        Some(DeviceName::Cpu) | None => ClockRule::Auto,
    })
}

/// The column with the time of one call: the one named in the file, or the tool's default.
fn time_column(file: &ConfigFile) -> Option<String> {
    let of_tool = || {
        let format = file.output.as_ref()?.format;
        format.time_column().map(str::to_owned)
    };
    file.metric.as_ref()?.time.clone().or_else(of_tool)
}

/// A key that the metric does not use would be misleading.
fn refuse_idle_keys(
    source: &ConfigSource<'_>,
    table: &MetricTable,
    named: Option<MetricName>,
) -> Result<()> {
    let keys = [
        ("time", &table.time),
        ("forward", &table.forward),
        ("backward", &table.backward),
        ("reference", &table.reference),
    ];
    let used = named.map_or(&[][..], MetricName::keys);
    let idle = |(key, value): &&(&str, &Option<String>)| value.is_some() && !used.contains(key);
    let Some((key, _)) = keys.iter().find(idle) else {
        return Ok(());
    };
    let message = format!("`metric.{key}` is not used by `{}`", shown(&table.name));
    Err(source.error_at(&format!("metric.{key}"), message).hint(
        "metric.time belongs to latency, throughput and ratio, metric.reference to ratio, \
         metric.forward and metric.backward to combined_step; none can be used with metric.expr",
    ))
}

impl MetricName {
    /// The named metric, if it is one: a column may have the same name.
    fn of(table: &MetricTable, time: Option<&str>) -> Option<Self> {
        match table.name.as_str() {
            "latency" if time.is_some() => Some(Self::Latency),
            "throughput" if time.is_some() => Some(Self::Throughput),
            "ratio" if time.is_some() || table.reference.is_some() => Some(Self::Ratio),
            "combined_step" | "Combined Step TFLOPS" => Some(Self::CombinedStep),
            _ => None,
        }
    }

    fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Latency | Self::Throughput => &["time"],
            Self::Ratio => &["time", "reference"],
            Self::CombinedStep => &["forward", "backward"],
        }
    }

    fn better(self) -> Better {
        match self {
            Self::Latency => Better::Lower,
            Self::Throughput | Self::Ratio | Self::CombinedStep => Better::Higher,
        }
    }

    fn metric(
        self,
        source: &ConfigSource<'_>,
        table: &MetricTable,
        time: Option<&str>,
    ) -> Result<Metric> {
        if table.better.is_some_and(|better| better != self.better()) {
            let message = format!("`{}` has the opposite direction", table.name);
            return Err(source.error_at("metric.better", message).hint(
                "leave metric.better out; a named metric defines which direction is better",
            ));
        }
        let mut passes = None;
        let (expr, unit) = match self {
            Self::Latency => latency(source, table, time)?,
            Self::Throughput => throughput(source, table, time)?,
            Self::CombinedStep => {
                let (expr, unit, of_passes) = combined_step(source, table)?;
                passes = Some(of_passes);
                (expr, unit)
            }
            Self::Ratio => ratio(source, table, time)?,
        };
        let is_step = self == Self::CombinedStep;
        let step_work = || is_step.then(|| STEP_WORK.to_owned());
        Ok(Metric {
            name: table.name.clone(),
            unit,
            better: self.better(),
            work: table.work.clone().or_else(step_work),
            bytes: table.bytes.clone(),
            expr: Some(expr),
            clocks: table.clocks.unwrap_or(ClockRule::Auto),
            passes,
        })
    }
}

fn latency(
    source: &ConfigSource<'_>,
    table: &MetricTable,
    time: Option<&str>,
) -> Result<(String, String)> {
    let (column, seconds) = seconds_of(source, "metric.time", time)?;
    let unit = table.unit.clone().unwrap_or_else(|| unit_in(&column));
    let of_unit = Metric { unit: unit.clone(), ..Metric::default() };
    let Some(per_unit) = of_unit.seconds_per_unit() else {
        let message = format!("`latency` is a time, but `{}` is not a unit of time", shown(&unit));
        return Err(source
            .error_at("metric.unit", message)
            .hint("write metric.unit as s, ms, us or ns"));
    };
    if per_unit == seconds {
        return Ok((quoted(&column), unit));
    }
    Ok((format!("{}*{seconds:e}/{per_unit:e}", quoted(&column)), unit))
}

fn throughput(
    source: &ConfigSource<'_>,
    table: &MetricTable,
    time: Option<&str>,
) -> Result<(String, String)> {
    let (column, seconds) = seconds_of(source, "metric.time", time)?;
    let unit = table.unit.clone().unwrap_or_else(|| "GFLOPS".to_owned());
    let scale = rate_of(source, &unit)?;
    let Some(work) = &table.work else {
        return Err(source
            .error_at("metric", "`throughput` needs the work of one call")
            .hint("add work = \"2*M*N*K\" in [metric], over the parameters of the cases"));
    };
    let time = format!("{}*{seconds:e}", quoted(&column));
    Ok((format!("({work})/({time})/{scale:e}"), unit))
}

/// Its expression and unit, and the rates of its passes: a third of the work is in the forward one.
fn combined_step(
    source: &ConfigSource<'_>,
    table: &MetricTable,
) -> Result<(String, String, StepPasses)> {
    let forward = table.forward.as_deref().unwrap_or(PASSES[0]);
    let backward = table.backward.as_deref().unwrap_or(PASSES[1]);
    let rates = [forward, backward].map(rate_in);
    if let [Some(one), Some(other)] = &rates
        && one == other
        && table.unit.as_ref().is_none_or(|unit| unit == one)
    {
        let (forward, backward) = (quoted(forward), quoted(backward));
        let expr = format!("6/(2/{forward}+4/{backward})");
        return Ok((expr, one.clone(), StepPasses { forward, backward }));
    }
    let (forward, of_forward) = seconds_of(source, "metric.forward", Some(forward))?;
    let (backward, of_backward) = seconds_of(source, "metric.backward", Some(backward))?;
    let unit = table.unit.clone().unwrap_or_else(|| "TFLOPS".to_owned());
    let scale = rate_of(source, &unit)?;
    let work = table.work.as_deref().unwrap_or(STEP_WORK);
    let (forward, backward) = (quoted(&forward), quoted(&backward));
    let forward = format!("{forward}*{of_forward:e}");
    let backward = format!("{backward}*{of_backward:e}");
    let passes = StepPasses {
        forward: format!("({work})/3/({forward})/{scale:e}"),
        backward: format!("({work})*2/3/({backward})/{scale:e}"),
    };
    Ok((format!("({work})/({forward}+{backward})/{scale:e}"), unit, passes))
}

fn ratio(
    source: &ConfigSource<'_>,
    table: &MetricTable,
    time: Option<&str>,
) -> Result<(String, String)> {
    let Some(reference) = table.reference.as_deref() else {
        return Err(source
            .error_at("metric", "`ratio` needs the time of the reference")
            .hint("add reference = \"reference_ms\" in [metric], a column of the output"));
    };
    let (reference, of_reference) = seconds_of(source, "metric.reference", Some(reference))?;
    let (time, of_time) = seconds_of(source, "metric.time", time)?;
    let (reference, time) = (quoted(&reference), quoted(&time));
    let unit = table.unit.clone().unwrap_or_else(|| "x".to_owned());
    let expr = if of_reference == of_time {
        format!("{reference}/{time}")
    } else {
        format!("({reference}*{of_reference:e})/({time}*{of_time:e})")
    };
    Ok((expr, unit))
}

/// A time column, and its unit in seconds.
fn seconds_of(
    source: &ConfigSource<'_>,
    path: &str,
    column: Option<&str>,
) -> Result<(String, f64)> {
    let Some(column) = column else {
        let message = format!("`{path}` is missing");
        return Err(source
            .error_at("metric", message)
            .hint("add time = \"time_ms\" in [metric], the column with the time of one call"));
    };
    let of_column = Metric { unit: unit_in(column), ..Metric::default() };
    match of_column.seconds_per_unit() {
        Some(seconds) if !column.contains('`') => Ok((column.to_owned(), seconds)),
        Some(_) | None => {
            let message =
                format!("the column `{}` does not end with a unit of time", shown(column));
            Err(source.error_at(path, message).hint(format!(
                "{path} names a column such as time_ms or Time (ms); for another, write metric.expr"
            )))
        }
    }
}

/// The size of one unit of work per second.
fn rate_of(source: &ConfigSource<'_>, unit: &str) -> Result<f64> {
    rate_scale(unit).ok_or_else(|| {
        let message = format!("`{}` is not a unit of work per second", shown(unit));
        source
            .error_at("metric.unit", message)
            .hint("write metric.unit as MFLOPS, GFLOPS, TFLOPS, GB/s, or like rows/s")
    })
}

/// The rate unit at the end of a column's name.
fn rate_in(column: &str) -> Option<String> {
    let of_column = Metric { unit: unit_in(column), ..Metric::default() };
    of_column.rate_per_unit()?;
    Some(of_column.unit)
}

fn quoted(column: &str) -> String {
    format!("`{column}`")
}

/// The unit at the end of a name, as in `time_ms`.
pub fn unit_in(name: &str) -> String {
    let last = name.rsplit(['_', ' ', '(']).next().unwrap_or(name).trim_end_matches(')');
    let guess = Metric { unit: last.to_owned(), ..Metric::default() };
    let is_unit = guess.seconds_per_unit().is_some() || guess.rate_per_unit().is_some();
    if is_unit && last != name { guess.unit } else { String::new() }
}

fn expression(source: &ConfigSource<'_>, path: &str, text: &str) -> Result<Expr> {
    parse_expr(text).map_err(|error| {
        source
            .error_at(path, format!("`{path}` cannot be read: {error}"))
            .hint(format!("write {path} like 2*M*N*K; put a name with spaces in backquotes"))
    })
}

/// Rejects a case for which the work or the bytes cannot be computed.
pub(super) fn check_cases(
    source: &ConfigSource<'_>,
    metric: &Metric,
    cases: &[Case],
) -> Result<()> {
    let amounts =
        [("metric.work", &metric.work, "operations"), ("metric.bytes", &metric.bytes, "bytes")];
    for (path, text, what) in amounts {
        let Some(text) = text else {
            continue;
        };
        let expr = expression(source, path, text)?;
        for case in cases {
            check_amount(source, path, what, &expr, case)?;
        }
    }
    Ok(())
}

/// A number without hundreds of digits.
fn plain(value: f64) -> String {
    if value == 0.0 || !value.is_finite() || (1e-3..1e9).contains(&value.abs()) {
        value.to_string()
    } else {
        format!("{value:e}")
    }
}

fn check_amount(
    source: &ConfigSource<'_>,
    path: &str,
    what: &str,
    expr: &Expr,
    case: &Case,
) -> Result<()> {
    let name = shown(&case.name);
    match expr.evaluate_params(&case.params) {
        Ok(amount) if is_amount(amount) => Ok(()),
        Ok(amount) => Err(source
            .error_at(path, format!("`{path}` is {} for `{name}`", plain(amount)))
            .hint(format!(
                "{path} must be a number of {what} from {AMOUNT_MIN:e} to {AMOUNT_MAX:e} for every \
                 case"
            ))),
        Err(reason) => {
            let params: Vec<&str> = case.params.keys().map(String::as_str).collect();
            let params = if params.is_empty() { "none".to_owned() } else { params.join(", ") };
            let message = format!("`{path}` cannot be computed for `{name}`: {reason}");
            Err(source.error_at(path, message).hint(format!(
                "the parameters of that case in [cases] are: {params}; they must be numbers"
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{CharterTime, Overrides, parse};
    use super::*;
    use std::path::Path;

    /// Reads a file with that format, metric and further tables.
    fn read(format: &str, metric: &str) -> std::result::Result<Metric, String> {
        let text = format!(
            "[target]\nop = \"x\"\nbackend = \"c\"\n[sources]\neditable = [\"k.c\"]\n[commands]\n\
             test = \"./t\"\nbench = \"./b\"\n[cases]\nlist = [\"M=2,N=3,K=4\"]\n[output]\n\
             format = \"{format}\"\n[metric]\n{metric}\n"
        );
        let now = CharterTime { minute: "2025-11-02 08:30".into() };
        let loaded = parse(&text, Path::new("/project"), &Overrides::default(), &now);
        loaded.map(|loaded| loaded.charter.metric).map_err(|error| error.to_string())
    }

    /// Compares the expression, the unit and the direction, or a part of the error message.
    fn check(format: &str, metric: &str, want: std::result::Result<(&str, &str, Better), &str>) {
        match (read(format, metric), want) {
            (Ok(got), Ok((expr, unit, better))) => {
                assert_eq!(got.expr.as_deref(), Some(expr));
                assert_eq!((got.unit.as_str(), got.better), (unit, better));
            }
            (Err(got), Err(want)) => assert!(got.contains(want), "{got}"),
            (got, want) => panic!("{got:?}, not {want:?}"),
        }
    }

    fn value(metric: &Metric, columns: &[(&str, f64)]) -> f64 {
        let expr = parse_expr(metric.expr.as_deref().unwrap()).unwrap();
        let lookup = |name: &str| columns.iter().find(|(n, _)| *n == name).map(|(_, v)| *v);
        expr.evaluate(&lookup).unwrap()
    }

    #[test]
    fn latency_is_a_column_of_a_time_in_any_unit() {
        let lower = |expr, unit| Ok((expr, unit, Better::Lower));
        check("hyperfine", "name = \"latency\"", lower("`median_s`", "s"));
        let given = "name = \"latency\"\ntime = \"Time (ms)\"";
        check("csv", given, lower("`Time (ms)`", "ms"));
        let scaled = "name = \"latency\"\nunit = \"us\"";
        check("libtest", scaled, lower("`time_s`*1e0/1e-6", "us"));
        let got = read("libtest", scaled).unwrap();
        assert!((value(&got, &[("time_s", 2e-6)]) - 2.0).abs() < 1e-9);
        let plain = read("csv", "name = \"latency\"\nunit = \"ms\"").unwrap();
        assert_eq!(plain.expr, None, "a column of that name is still a column");
    }

    #[test]
    fn throughput_is_work_for_each_second() {
        let keys = "name = \"throughput\"\nwork = \"2*M*N*K\"";
        let got = read("google-benchmark", keys).unwrap();
        assert_eq!((got.unit.as_str(), got.better), ("GFLOPS", Better::Higher));
        let columns = [("real_time_s", 48e-9), ("M", 2.0), ("N", 3.0), ("K", 4.0)];
        assert!((value(&got, &columns) - 1.0).abs() < 1e-12);
        let bytes = "name = \"throughput\"\nwork = \"4*M\"\ntime = \"t_us\"\nunit = \"GB/s\"";
        let got = read("csv", bytes).unwrap();
        assert!((value(&got, &[("t_us", 1.0), ("M", 500.0)]) - 2.0).abs() < 1e-12);
        let needs = "`throughput` needs the work of one call";
        check("nvbench", "name = \"throughput\"", Err(needs));
        let unit = "name = \"throughput\"\nwork = \"M\"\nunit = \"ms\"";
        check("nvbench", unit, Err("`ms` is not a unit of work per second"));
        let unknown = "name = \"throughput\"\nwork = \"Q\"";
        check("nvbench", unknown, Err("are: K, M, N; they must be numbers"));
    }

    #[test]
    fn combined_step_is_the_published_one() {
        let got = read("csv", "name = \"combined_step\"").unwrap();
        assert_eq!((got.unit.as_str(), got.better), ("TFLOPS", Better::Higher));
        let mnk = 4096.0_f64.powi(3);
        let step = |forward: f64, backward: f64| {
            let forward_ms = 2.0 * mnk / (forward * 1e12) * 1e3;
            let backward_ms = 4.0 * mnk / (backward * 1e12) * 1e3;
            let columns = [
                ("Forward Time (ms)", forward_ms),
                ("Backward Time (ms)", backward_ms),
                ("M", 4096.0),
                ("N", 4096.0),
                ("K", 4096.0),
            ];
            value(&got, &columns)
        };
        assert!((step(500.0, 250.0) - 300.0).abs() < 1e-9);
        assert!((step(520.0, 258.0) - 310.077).abs() < 1e-3);
        let rates = "name = \"combined_step\"\nforward = \"Forward TFLOPS\"\n\
                     backward = \"Backward TFLOPS\"";
        let want = "6/(2/`Forward TFLOPS`+4/`Backward TFLOPS`)";
        check("csv", rates, Ok((want, "TFLOPS", Better::Higher)));
    }

    #[test]
    fn ratio_is_the_time_of_the_reference_over_the_time() {
        let keys = "name = \"ratio\"\nreference = \"torch_ms\"\ntime = \"triton_ms\"";
        let want = Ok(("`torch_ms`/`triton_ms`", "x", Better::Higher));
        check("csv", keys, want);
        let mixed = "name = \"ratio\"\nreference = \"torch_ms\"\ntime = \"triton_us\"";
        let got = read("csv", mixed).unwrap();
        let columns = [("torch_ms", 3.0), ("triton_us", 1500.0)];
        assert!((value(&got, &columns) - 2.0).abs() < 1e-12);
        let alone = "name = \"ratio\"\nreference = \"torch_ms\"";
        check("csv", alone, Err("`metric.time` is missing"));
        check("libtest", "name = \"ratio\"", Err("needs the time of the reference"));
        let unitless = "name = \"ratio\"\nreference = \"torch\"\ntime = \"t_ms\"";
        check("csv", unitless, Err("`torch` does not end with a unit of time"));
    }

    #[test]
    fn a_metric_of_ones_own_is_defined_once_and_selected() {
        let keys = "name = \"score\"\n[metrics.score]\nexpr = \"1e3/t_ms\"\nunit = \"calls\"\n\
                    better = \"higher\"\n[metrics.other]\nexpr = \"t_ms\"";
        check("csv", keys, Ok(("1e3/t_ms", "calls", Better::Higher)));
        let broken = "name = \"score\"\nunit = \"ms\"\n[metrics.score]\nexpr = \"1+\"";
        check("csv", broken, Err("karve.toml:17: `metrics.score.expr` cannot be read"));
        let over = "name = \"latency\"\n[metrics.latency]\nexpr = \"a_ms+b_ms\"\nunit = \"ms\"";
        check("hyperfine", over, Ok(("a_ms+b_ms", "ms", Better::Lower)));
        let clock = "name = \"t_ms\"\n[metrics.wall_time]\nexpr = \"a\"";
        check("csv", clock, Err("the name of karve's own clock"));
    }

    #[test]
    fn a_key_that_the_metric_does_not_use_is_refused() {
        let idle = "name = \"t_ms\"\ntime = \"t_ms\"";
        check("csv", idle, Err("`metric.time` is not used by `t_ms`"));
        let wrong = "name = \"latency\"\nreference = \"t_ms\"";
        check("hyperfine", wrong, Err("`metric.reference` is not used by `latency`"));
        let way = "name = \"latency\"\nbetter = \"higher\"";
        check("hyperfine", way, Err("`latency` has the opposite direction"));
        let unit = "name = \"latency\"\nunit = \"GFLOPS\"";
        check("hyperfine", unit, Err("`latency` is a time, but `GFLOPS` is not a unit of time"));
    }
}
