//! Measured spaces as tables: a column for each knob, then `valid` and `time`.

use super::{EvaluationOutcome, Evaluations, MeasuredSetting};

/// Reads a table. Columns before `valid`, or before `time` if there is no `valid`, are knobs.
pub(super) fn parse_table(text: &str) -> Result<(Vec<String>, Vec<MeasuredSetting>), String> {
    let mut lines = text.lines().enumerate();
    let (_, head) = lines.next().ok_or("it is empty")?;
    let head: Vec<&str> = head.split(',').map(str::trim).collect();
    let column = |name: &str| head.iter().position(|column| *column == name);
    let time = column("time").ok_or("there is no column named time")?;
    let valid = column("valid");
    let knobs = valid.unwrap_or(time).min(time);
    if knobs == 0 {
        return Err("there is no column before valid and time, so there are no knobs".into());
    }
    let mut rows = Vec::new();
    for (number, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        let wrong = |what: &str| format!("line {}: {what}", number + 1);
        if cells.len() != head.len() {
            return Err(wrong("its number of columns differs from the first line"));
        }
        let works = valid.is_none_or(|valid| cells[valid] == "1" || cells[valid] == "true");
        let value = match works {
            false => None,
            true => {
                let value: f64 = cells[time].parse().map_err(|_| wrong("no time"))?;
                let usable = value.is_finite() && value > 0.0;
                Some(usable.then_some(value).ok_or_else(|| wrong("the time is not above 0"))?)
            }
        };
        rows.push(MeasuredSetting {
            values: cells[..knobs].iter().map(|cell| (*cell).to_owned()).collect(),
            value,
        });
    }
    let names = head[..knobs].iter().map(|name| (*name).to_owned());
    Ok((names.collect(), rows))
}

/// Evaluations as a table, with times in milliseconds.
pub(super) fn render_table(evaluations: &Evaluations) -> String {
    // A comma or a newline within a cell would split it.
    let cell = |text: &String| text.replace([',', '\n', '\r'], "_");
    let line = |cells: &[String]| cells.iter().map(cell).collect::<Vec<_>>().join(",");
    let mut out = format!("{},valid,time\n", line(&evaluations.knobs));
    for row in &evaluations.rows {
        out += &line(&row.values);
        out += &match &row.outcome {
            EvaluationOutcome::Timed { time_ms, .. } => format!(",1,{}\n", rounded(*time_ms)),
            EvaluationOutcome::Failed(_) => ",0,\n".to_owned(),
        };
    }
    out
}

/// Nine digits: more than any clock resolves.
fn rounded(value: f64) -> f64 {
    format!("{value:.8e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_failed_have_no_time() {
        let (knobs, rows) = parse_table("A,B,valid,time\n1,x,1,2.5\n2,y,0,\n").unwrap();
        assert_eq!(knobs, ["A", "B"]);
        assert_eq!(rows[0].value, Some(2.5));
        assert_eq!(rows[1].value, None);
        assert_eq!(rows[1].values, ["2", "y"]);
    }

    #[test]
    fn mistakes_are_named() {
        for (text, part) in [
            ("", "empty"),
            ("A,B\n1,2\n", "time"),
            ("time\n1\n", "no knobs"),
            ("A,time\n1\n", "line 2"),
            ("A,time\n1,fast\n", "line 2: no time"),
            ("A,time\n1,-3\n", "above 0"),
        ] {
            let error = parse_table(text).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
