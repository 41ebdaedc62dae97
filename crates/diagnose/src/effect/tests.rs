use super::*;
use crate::findings::findings_for;
use crate::scene::Scene;

#[test]
fn a_bound_is_a_share_with_its_unit_and_what_is_no_number_is_not_known() {
    let words = |low, high| Effect::between(low, high, EffectBasis::TransactionTime).describe();
    assert_eq!(words(0.0, 0.22), "up to 22 % of the transactions' time");
    assert_eq!(words(0.04, 0.09), "4.0 % to 9.0 % of the transactions' time");
    assert_eq!(words(0.1, 0.1), "10 % of the transactions' time");
    assert_eq!(words(-0.3, -0.1), "less than 0.1 % of the transactions' time");
    assert_eq!(words(-0.3, 7.0), "up to 100 % of the transactions' time");
    assert_eq!(words(0.0, f64::NAN), "unknown: too few events were counted to calculate a share");
    let json = serde_json::to_value(Effect::between(0.25, 0.5, EffectBasis::Figure)).unwrap();
    assert_eq!(json, serde_json::json!({ "kind": "bounded", "low": 0.25, "high": 0.5, "of": "figure" }));
    let json = serde_json::to_value(Effect::unknown("why")).unwrap();
    assert_eq!(json, serde_json::json!({ "kind": "unknown", "why": "why" }));
}

#[test]
fn what_is_less_than_the_run_knows_itself_to_is_marked_and_stays() {
    let of = |steal: f32| {
        let evidence = Scene::healthy().metric("host.cpu.total.steal", steal).evidence();
        let found: Vec<Finding> =
            findings_for(&evidence).into_iter().filter(|one| one.id == "steal").collect();
        assert_eq!(found.len(), 1, "{steal}");
        found[0].clone()
    };
    // The seconds of the healthy run have a mean of 1,040 ± 1.2 %.
    assert!(of(0.03).is_shown(), "3.2 % of the result");
    let mut rough = Scene::healthy().metric("host.cpu.total.steal", 0.03);
    rough.window = (0..20).map(|i| 1000 + (i * 37 % 11) * 80).collect();
    let found = findings_for(&rough.evidence());
    let steal = found.iter().find(|one| one.id == "steal").unwrap();
    assert!(steal.below_precision && !steal.is_shown(), "{steal:?}");
    assert_eq!(serde_json::to_value(steal).unwrap()["below_precision"], true);
    assert!(of(0.12).is_shown(), "a tenth is always seen");
}

#[test]
fn a_red_one_and_one_whose_effect_is_unknown_are_shown() {
    let finding = |severity, effect| Finding {
        id: "steal",
        severity,
        point: None,
        title: String::new(),
        evidence: Vec::new(),
        effect,
        below_precision: false,
        threshold: String::new(),
        next: String::new(),
    };
    let small = || Effect::up_to(0.0001, EffectBasis::Figure);
    let mut found = [
        finding(Severity::Red, small()),
        finding(Severity::Amber, small()),
        finding(Severity::Note, Effect::unknown("nobody counts it")),
    ];
    mark(&mut found, &Scene::healthy().evidence());
    assert_eq!(found.map(|one| one.is_shown()), [true, false, true]);
}
