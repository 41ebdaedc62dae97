use kelvin_diagnose::EffectBasis;
use kelvin_lab::ab::AbSummary;
use kelvin_lab::advise::ProofVerdict;
use kelvin_store::GroupId;

use super::*;
use crate::group::ab_tests as compared;

fn line(title: &str, effect: Effect, rules: Rules, proof: Option<(i64, Proof)>) -> Line {
    let remedy = Remedy {
        finding: "scan-without-index",
        title: title.into(),
        change: Change::Setting { name: "a".into(), before: "1".into(), value: "2".into() },
        reason: "a statement that reads all of public.customer takes 75 % of the statements' time (100 calls, 7.5 ms \
            each): SELECT c_id FROM customer WHERE c_w_id = $1"
            .into(),
        effect,
        rules,
    };
    Line { remedy, proof }
}

#[test]
fn one_change_is_tried_until_it_is_clear_and_each_of_several_for_six_blocks() {
    assert_eq!(prove::most_blocks(true, false), 2 * prove::most_blocks(false, false));
    assert_eq!(prove::most_blocks(true, true), 40);
    assert_eq!(prove::most_blocks(false, true), AbPlan::BLOCKS);
}

#[test]
fn the_list_has_bounds_rules_and_answers() {
    let proof = Proof {
        verdict: ProofVerdict::Confirmed,
        ratio: Some(3.2),
        low: Some(2.9),
        high: Some(3.5),
        blocks: 6,
    };
    let forbidden = Rules::Forbidden { why: "TPC-C 3.5: a committed transaction must survive a failure" };
    let advice = Advice {
        run: Some(RunId(17)),
        what: "tproc-c on PostgreSQL 15".into(),
        lines: vec![
            line(
                "index on public.customer (c_w_id)",
                Effect::up_to(0.75, EffectBasis::StatementTime),
                Rules::Allowed,
                Some((12, proof)),
            ),
            line(
                "synchronous_commit = off (now on)",
                Effect::up_to(0.2, EffectBasis::TransactionTime),
                forbidden,
                None,
            ),
            line("a = 2", Effect::unknown("no bound is known"), Rules::Allowed, None),
        ],
        forbidden: 0,
        not_explained: Vec::new(),
    };
    insta::assert_snapshot!("advice", advice.text().unwrap());
    let json: Value = serde_json::from_str(&advice.records().unwrap()[0]).unwrap();
    assert_eq!(json["changes"][0]["tried"]["proof"]["verdict"], "confirmed");
    assert_eq!(
        (json["changes"][1]["number"].as_i64(), json["changes"][2]["gain"].is_null()),
        (Some(2), true)
    );
    let none = Advice {
        run: Some(RunId(3)),
        what: "scan".into(),
        lines: Vec::new(),
        forbidden: 2,
        not_explained: vec!["select 1 from t where a = $1: its values are not known".into()],
    };
    let shown = none.text().unwrap();
    assert!(shown.contains("2 omitted") && shown.contains("its values are not known"), "{shown}");
}

#[test]
fn an_unfinished_proof_names_the_runs_that_do_not_count() {
    let mut plan = compared::plan(&["as it is", "work_mem = 8MB (now 4MB)"]);
    plan.blocks = 4;
    let mut rows = compared::rows(&plan, 4, 0.0);
    rows[9].void = Some("void: 2 of 10 seconds without a transaction".into());
    let summary = Box::new(AbSummary::from_runs(&plan, &rows));
    let proof = Proof::from_summary(&summary);
    let outcome =
        prove::TrialResult::Compared { group: GroupId(4), summary, proof, waits: Vec::new(), kept: false };
    let step = prove::Step { title: "work_mem = 8MB (now 4MB)".into(), bound: None, outcome };
    insta::assert_snapshot!("proof_unfinished", prove::render(RunId(1), &[step], "kelvin"));
}
