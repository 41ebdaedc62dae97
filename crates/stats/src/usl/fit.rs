//! Non-linear least squares of three parameters, two of which must not be negative.

use super::Point;

/// λ, σ, κ.
pub(super) type Parameters = [f64; 3];

/// Steps of one descent. It converges in ten or so; the rest is for a bad start.
const MOST_STEPS: usize = 200;

/// X(N).
pub(super) fn law([lambda, sigma, kappa]: Parameters, n: f64) -> f64 {
    lambda * n / (1.0 + sigma * (n - 1.0) + kappa * n * (n - 1.0))
}

/// N*, infinite when throughput never falls. Where it falls from the first user on, that is 1.
pub(super) fn peak([_, sigma, kappa]: Parameters) -> f64 {
    match (1.0 - sigma, kappa) {
        (rest, _) if rest <= 0.0 => 1.0,
        (_, kappa) if kappa <= 0.0 => f64::INFINITY,
        (rest, kappa) => (rest / kappa).sqrt().max(1.0),
    }
}

/// The best of the descents from `starts` and from the linearised law. None when none of them is finite.
pub(super) fn least_squares(points: &[Point], starts: &[Parameters]) -> Option<Parameters> {
    let descents = starts.iter().copied().chain(linearised(points)).map(|start| descend(points, start, true));
    descents
        .filter(|(found, squares)| squares.is_finite() && found[0] > 0.0)
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(found, _)| found)
}

/// The same without the bounds: σ and κ may come out below 0, as the errors have it. Where the truth is 0, only such fits
/// scatter around it. None when the descent does not end at a law.
pub(super) fn unbounded(points: &[Point], start: Parameters) -> Option<Parameters> {
    let (found, squares) = descend(points, start, false);
    (squares.is_finite() && found[0] > 0.0).then_some(found)
}

/// Starts that span what systems do: from none to half contention, and peaks from the largest N measured
/// down to a fifth of it. λ is the best for each.
pub(super) fn grid(points: &[Point]) -> Vec<Parameters> {
    let largest = points.iter().map(|p| p.users).fold(1.0, f64::max);
    let mut starts = Vec::new();
    for sigma in [0.0, 0.02, 0.1, 0.5] {
        for times in [0.0, 1.0, 25.0] {
            let kappa = times / largest.powi(2);
            let shape = |p: &Point| law([1.0, sigma, kappa], p.users);
            let product: f64 = points.iter().map(|p| p.throughput * shape(p)).sum();
            let squares: f64 = points.iter().map(|p| shape(p).powi(2)).sum();
            starts.push([product / squares, sigma, kappa]);
        }
    }
    starts
}

/// N/X = 1/λ + σ/λ·(N − 1) + κ/λ·N(N − 1) is linear. Each point weighs by how X answers to a change of N/X; a
/// parameter that comes out negative is taken as 0 and the rest solved again.
fn linearised(points: &[Point]) -> Vec<Parameters> {
    let solve_for = |free: [bool; 3]| -> Option<Parameters> {
        let (mut matrix, mut right) = ([[0.0; 3]; 3], [0.0; 3]);
        for p in points {
            let n = p.users;
            let weight = (p.throughput.powi(2) / n).powi(2);
            let row = [1.0, n - 1.0, n * (n - 1.0)];
            for i in 0..3 {
                right[i] += weight * row[i] * n / p.throughput;
                for j in 0..3 {
                    matrix[i][j] += weight * row[i] * row[j];
                }
            }
        }
        let [a, b, c] = solve(matrix, right, free)?;
        (a > 0.0).then(|| [1.0 / a, (b / a).max(0.0), (c / a).max(0.0)])
    };
    [[true; 3], [true, true, false], [true, false, true]].into_iter().filter_map(solve_for).collect()
}

/// Levenberg and Marquardt's descent with Marquardt's scaling, where it is `bounded` projected onto σ ≥ 0 and κ ≥ 0. A
/// parameter at its bound is left out of a step as long as the squares would rise with it. Returns the sum of squares too.
fn descend(points: &[Point], start: Parameters, bounded: bool) -> (Parameters, f64) {
    let least = if bounded { 0.0 } else { f64::NEG_INFINITY };
    let mut at = start;
    let mut squares = sum_of_squares(points, at);
    let mut damping = 1e-3;
    for _ in 0..MOST_STEPS {
        let (matrix, gradient) = normal_equations(points, at);
        let free = [true, at[1] > least || gradient[1] > 0.0, at[2] > least || gradient[2] > 0.0];
        let mut damped = matrix;
        for (i, row) in damped.iter_mut().enumerate() {
            row[i] *= 1.0 + damping;
        }
        let next = solve(damped, gradient, free)
            .map(|step| [at[0] + step[0], (at[1] + step[1]).max(least), (at[2] + step[2]).max(least)]);
        let better = next.map(|next| (next, sum_of_squares(points, next)));
        match better {
            Some((next, found)) if next[0] > 0.0 && found < squares => {
                let gained = squares - found;
                (at, squares) = (next, found);
                if gained <= 1e-15 * squares {
                    break;
                }
                damping = (damping / 10.0).max(1e-12);
            }
            _ if damping > 1e12 => break,
            _ => damping *= 10.0,
        }
    }
    (at, squares)
}

/// Infinite where the law has no throughput, beyond a pole that only σ or κ below 0 have.
fn sum_of_squares(points: &[Point], at: Parameters) -> f64 {
    let squared = |p: &Point| match law(at, p.users) {
        fitted if fitted > 0.0 => (p.throughput - fitted).powi(2),
        _ => f64::INFINITY,
    };
    points.iter().map(squared).sum()
}

/// JᵀJ and Jᵀr at a place, r being measured less fitted.
fn normal_equations(points: &[Point], at: Parameters) -> ([[f64; 3]; 3], [f64; 3]) {
    let (mut matrix, mut gradient) = ([[0.0; 3]; 3], [0.0; 3]);
    for p in points {
        let residual = p.throughput - law(at, p.users);
        let row = derivatives(at, p.users);
        for i in 0..3 {
            gradient[i] += row[i] * residual;
            for j in 0..3 {
                matrix[i][j] += row[i] * row[j];
            }
        }
    }
    (matrix, gradient)
}

/// I − H at a fit: what it leaves of errors, to first order. A parameter at its bound is none of the fit's.
pub(super) fn residual_projection(points: &[Point], at: Parameters) -> Option<Vec<Vec<f64>>> {
    let (matrix, _) = normal_equations(points, at);
    let free = [true, at[1] != 0.0, at[2] != 0.0];
    let column = |p: &Point| Some((derivatives(at, p.users), solve(matrix, derivatives(at, p.users), free)?));
    let columns: Vec<_> = points.iter().map(column).collect::<Option<_>>()?;
    let entry = |i: usize, j: usize| {
        let ([a, b, c], [x, y, z]) = (columns[i].0, columns[j].1);
        f64::from(u8::from(i == j)) - (a * x + b * y + c * z)
    };
    Some((0..points.len()).map(|i| (0..points.len()).map(|j| entry(i, j)).collect()).collect())
}

/// Of X(N), by λ, σ and κ.
fn derivatives(at: Parameters, n: f64) -> [f64; 3] {
    let below = 1.0 + at[1] * (n - 1.0) + at[2] * n * (n - 1.0);
    let fitted = at[0] * n / below;
    [n / below, -fitted * (n - 1.0) / below, -fitted * n * (n - 1.0) / below]
}

/// Solves for the free unknowns, the others being 0. The matrix is symmetric and not negative: it is scaled
/// to a diagonal of 1 first, because λ and κ may be ten orders of magnitude apart, and eliminated without
/// pivoting. None when it is singular.
fn solve(matrix: [[f64; 3]; 3], right: [f64; 3], free: [bool; 3]) -> Option<[f64; 3]> {
    let scale: [f64; 3] =
        std::array::from_fn(
            |i| if free[i] && matrix[i][i] > 0.0 { matrix[i][i].sqrt().recip() } else { 0.0 },
        );
    let mut a: [[f64; 3]; 3] = std::array::from_fn(|i| {
        std::array::from_fn(|j| {
            if scale[i] == 0.0 { f64::from(i == j) } else { matrix[i][j] * scale[i] * scale[j] }
        })
    });
    let mut b: [f64; 3] = std::array::from_fn(|i| right[i] * scale[i]);
    for k in 0..3 {
        let (row, pivot) = (a[k], a[k][k]);
        if pivot.is_nan() || pivot < 1e-14 {
            return None;
        }
        for i in k + 1..3 {
            let factor = a[i][k] / pivot;
            for (entry, above) in a[i].iter_mut().zip(row) {
                *entry -= factor * above;
            }
            b[i] -= factor * b[k];
        }
    }
    let mut x = [0.0; 3];
    for k in (0..3).rev() {
        let known: f64 = (k + 1..3).map(|j| a[k][j] * x[j]).sum();
        x[k] = (b[k] - known) / a[k][k];
    }
    Some(std::array::from_fn(|i| x[i] * scale[i]))
}
