//! Checks that a run's counts are the sums of its agents' counts, and that each user does the same with any number of
//! agents.

use kelvin_measure::event::KindCounts;
use kelvin_store::Store;

use super::*;

/// The sums over a point's window, by series. They were checked against the sums of the collectors.
fn kinds(store: &std::path::Path, run: &str) -> Vec<KindCounts> {
    let store = Store::open_read_only(store).unwrap();
    let run = store.load(store.find(run).unwrap()).unwrap();
    let figures = run.point_statistics(0).unwrap();
    let checks = run.cross_checks(0, &figures);
    let summed = checks.iter().any(|check| check.name.contains("the collector's sum"));
    assert!(summed && checks.iter().all(|check| check.holds), "{checks:?}");
    figures.kinds
}

/// Asserts that each histogram bin of a run is the sum of the bins in the agents' own files of their last run.
#[track_caller]
pub(crate) fn assert_bins_are_the_sums(fleet: &TestFleet, run: &str, agents: &[&str]) {
    let whole = kinds(&fleet.place.store(), run);
    let mut sums = vec![KindCounts::default(); whole.len()];
    for agent in agents {
        let own = kinds(&fleet.place.path(&format!("{agent}.db")), "last");
        assert_eq!(own.len(), sums.len());
        sums.iter_mut().zip(&own).for_each(|(sum, own)| sum.add(own));
    }
    assert!(whole.iter().any(|kind| !kind.latency.is_empty()), "nothing was measured");
    for (kind, sum) in whole.iter().zip(&sums) {
        let counts = |kind: &KindCounts| [kind.committed, kind.rolled_back, kind.failed, kind.retries];
        assert_eq!((counts(kind), kind.latency.exact()), (counts(sum), sum.latency.exact()));
        assert!(kind.latency.buckets().eq(sum.latency.buckets()), "the bins differ");
    }
}

/// A hash of the values that each user drew, in order.
fn hash_inputs(data: &Data) -> Vec<(i64, i64)> {
    let mut session = data.engine("postgres").connect().unwrap();
    let hash = "('x' || substr(md5(string_agg(n::text, ',' order by place)), 1, 15))::bit(60)::bigint";
    let rows =
        session.query(&format!("select client, {hash} from drawn group by client order by client")).unwrap();
    let users = (0..rows.len()).map(|row| (rows.int(row, 0).unwrap(), rows.int(row, 1).unwrap())).collect();
    session.query("truncate drawn").unwrap();
    users
}

#[test]
fn each_global_user_draws_the_same_and_the_bins_are_the_sums_of_the_agents() {
    let data = Data { server: Server::start_with(&[("max_connections", "260")]) };
    let table = "create table drawn (place bigserial, client int, n int)";
    data.engine("postgres").connect().unwrap().query(table).unwrap();
    let url = data.url("postgres");
    let fleet = TestFleet::start(4, &[&url], "15s", &[]);
    fleet.place.write(
        "draw.sql",
        "\\set n random(1, 1000000)\ninsert into drawn (client, n) values (:client_id, :n);\n",
    );
    let run = [
        "run",
        "script",
        "draw.sql",
        "--target",
        &url,
        "--accept-noise",
        "--users",
        "200",
        "--transactions",
        "10",
    ];
    fleet.place.expect(0, &run);
    let here = hash_inputs(&data);
    assert_eq!(here.len(), 200);
    for hosts in [&["g0"][..], &["g2", "g1"], &["g0", "g1", "g2", "g3"]] {
        let names = hosts.join(",");
        let flags = ["--fleet", "lab", "--hosts", &names, "--start-skew", "10s"];
        let output = fleet.place.run(&[&run[..], &flags].concat());
        assert_counts(&fleet.place, &output);
        assert_eq!(hash_inputs(&data), here, "{names}");
        assert_bins_are_the_sums(&fleet, "last", hosts);
    }
}
