//! Tests of grids: what restrictions leave, what is rejected, and a comparison with brute force.

use super::*;
use proptest::prelude::*;

fn axis(name: &str, values: &[i64]) -> Axis {
    let values: Vec<String> = values.iter().map(ToString::to_string).collect();
    Axis::new(name, &values, None).unwrap()
}

fn words(name: &str, values: &[&str]) -> Axis {
    let values: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
    Axis::new(name, &values, None).unwrap()
}

fn grid(axes: Vec<Axis>, texts: &[&str]) -> Result<Grid, String> {
    let mut restrictions = Vec::new();
    {
        let mut terms = RestrictionNames::new(&axes, BTreeMap::from([("KWG".into(), "32".into())]));
        for text in texts {
            restrictions.push(terms.restriction(text)?);
        }
    }
    Grid::new(axes, &restrictions).map_err(|error| error.to_string())
}

fn all(grid: &Grid) -> Vec<String> {
    let show = |point| {
        let values: Vec<String> = grid.config(point).into_values().collect();
        values.join(" ")
    };
    grid.points().map(show).collect()
}

#[test]
fn restrictions_leave_what_they_allow() {
    let axes = vec![axis("A", &[4, 1, 2]), axis("B", &[1, 2, 4, 8])];
    let grid = grid(axes, &["A % B == 0 or B > KWG", "A * B <= 4"]).unwrap();
    assert_eq!(all(&grid), ["1 1", "2 1", "2 2", "4 1"]);
    assert_eq!(grid.default_point(), Some(GridPoint(3)));
    assert_eq!(grid.neighbours(GridPoint(1)), [GridPoint(0), GridPoint(3), GridPoint(2)]);
}

#[test]
fn words_are_compared_and_a_knob_may_depend_on_another() {
    let axes = vec![words("ORDER", &["naive", "tiled"]), axis("TILE", &[8, 16])];
    let mut terms = RestrictionNames::new(&axes, BTreeMap::new());
    let when = terms.conditional("TILE", "ORDER == 'tiled'").unwrap();
    let grid = Grid::new(axes, &[when]).unwrap();
    assert_eq!(all(&grid), ["naive 8", "tiled 8", "tiled 16"]);
}

#[test]
fn mistakes_are_named() {
    let two = || vec![axis("A", &[1, 2]), axis("B", &[0, 1])];
    for (texts, part) in [
        (&["A < 4", "A > 8", "B == 1"][..], "`A > 8`"),
        (&["A <= B", "B < A"], "`A <= B` and `B < A` together"),
        (&["C == 1"], "`C` is not a knob; there are A, B"),
        (&["A +"], "ends too early"),
        (&["A < 'x'"], "word"),
        (&["1 == 2"], "`1 == 2`"),
    ] {
        let error = grid(two(), texts).unwrap_err();
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(
        grid(vec![axis("A", &[1]), axis("A", &[2])], &[]).unwrap_err(),
        "the knob A is declared twice"
    );
}

#[test]
fn what_divides_by_zero_is_left_out_and_told() {
    let axes = vec![axis("A", &[2, 3]), axis("B", &[0, 2])];
    let with = grid(axes.clone(), &["A % B == 0"]).unwrap();
    assert_eq!(all(&with), ["2 2"]);
    assert!(with.notes()[0].contains("divides by zero"));
    let guarded = grid(axes, &["B == 0 || A % B == 0"]).unwrap();
    assert_eq!(guarded.len(), 3);
    assert!(guarded.notes().is_empty());
}

#[test]
fn a_billion_combinations_are_not_looked_at() {
    let capabilities: Vec<i64> = (0..8).map(|power| 1 << power).collect();
    let names = ["A", "B", "C", "D", "E", "F", "G", "H", "I", "J"];
    let axes: Vec<Axis> = names.iter().map(|name| axis(name, &capabilities)).collect();
    // Exponents 0 to 7 of ten knobs; sums of at most 7 over all ten are 19,448.
    let grid = grid(axes, &["A*B*C*D*E*F*G*H*I*J <= 128"]).unwrap();
    assert_eq!(grid.len(), 19_448);
}

#[test]
fn of_a_space_too_large_to_list_a_sample_is_searched() {
    let values: Vec<i64> = (1..=64).collect();
    let axes: Vec<Axis> =
        ["A", "B", "C", "D", "E"].iter().map(|name| axis(name, &values)).collect();
    let grid = grid(axes, &["A != B"]).unwrap();
    assert!(!grid.is_whole());
    assert!(grid.len() > 100_000);
    let differ = |point| grid.ranks(point)[0] != grid.ranks(point)[1];
    assert!(grid.points().all(differ));
}

proptest! {
    #![proptest_config(crate::testing::fixed(200))]

    /// The walk finds the same settings as trying every combination.
    #[test]
    fn the_walk_agrees_with_trying_all(
        sizes in proptest::collection::vec(1_usize..5, 3),
        texts in proptest::collection::vec(
            prop_oneof![
                Just("A % B == 0"), Just("A * B * C <= 9"), Just("B < C or A == 1"),
                Just("not (A > 2 and C != 1)"), Just("C ** 2 >= A // B"), Just("max(A, B) != C"),
                Just("1 <= A - B + 2 < 4"), Just("A in [1, 3] or C / B > 1"), Just("-A < B - 3"),
            ],
            0..4,
        ),
    ) {
        let axes: Vec<Axis> = ["A", "B", "C"].iter().zip(&sizes)
            .map(|(name, size)| axis(name, &(1..=*size as i64).collect::<Vec<i64>>()))
            .collect();
        let mut want = Vec::new();
        for a in 1..=sizes[0] { for b in 1..=sizes[1] { for c in 1..=sizes[2] {
            let value = |name: &str| Some(match name { "A" => a, "B" => b, _ => c } as f64);
            let holds = |text: &&str| {
                crate::expr::parse_expr(text).unwrap().evaluate(&value).unwrap() != 0.0
            };
            if texts.iter().all(holds) {
                want.push(format!("{a} {b} {c}"));
            }
        } } }
        match grid(axes, &texts) {
            Ok(grid) => {
                prop_assert_eq!(all(&grid), want);
                for point in grid.points() {
                    prop_assert_eq!(grid.find(grid.ranks(point)), Some(point));
                }
            }
            Err(_) => prop_assert!(want.is_empty()),
        }
    }
}

#[test]
fn hard_restrictions_end_in_a_sample_with_the_default() {
    let values: Vec<String> = (1..=10).map(|value| value.to_string()).collect();
    let names = ["A", "B", "C", "D", "E", "F", "G", "H", "I"];
    let axes: Vec<Axis> =
        names.iter().map(|name| Axis::new(name, &values, Some("1")).unwrap()).collect();
    let hard = "A*B*C*D*E*F*G*H*I % 1009 == 1";
    let restriction = RestrictionNames::new(&axes, BTreeMap::new()).restriction(hard).unwrap();
    let grid = Grid::new(axes, &[restriction]).unwrap();
    assert!(!grid.is_whole() && grid.len() > 100, "{}", grid.len());
    assert!(grid.notes()[0].contains("too hard"), "{:?}", grid.notes());
    let default = grid.default_point().unwrap();
    assert!(grid.config(default).values().all(|value| value == "1"));
}

#[test]
fn a_large_space_keeps_its_default() {
    let values: Vec<String> = (1..=64).map(|value| value.to_string()).collect();
    let axis = |name: &str| Axis::new(name, &values, Some("7")).unwrap();
    let axes: Vec<Axis> = ["A", "B", "C", "D"].map(axis).to_vec();
    let grid = Grid::new(axes, &[]).unwrap();
    assert!(!grid.is_whole());
    let default = grid.default_point().unwrap();
    assert!(grid.config(default).values().all(|value| value == "7"));
}
