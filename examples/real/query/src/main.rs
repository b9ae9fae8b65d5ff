//! `query [ROWS]` makes a table of sales, joins it with one of shops, and sums up by region and article, with polars.

use polars::prelude::*;

fn sales(rows: u64) -> PolarsResult<DataFrame> {
    let hash = |row: u64| (row + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let shops: Vec<u32> = (0..rows).map(|row| (hash(row) >> 40) as u32 % 2_000).collect();
    let articles: Vec<String> = (0..rows).map(|row| format!("article number {:05}", (hash(row) >> 20) % 30_000)).collect();
    let amounts: Vec<i64> = (0..rows).map(|row| 1 + (hash(row) >> 50) as i64 % 20).collect();
    let prices: Vec<f64> = (0..rows).map(|row| (hash(row) >> 30) as f64 % 1_000.0 / 10.0).collect();
    df!("shop" => shops, "article" => articles, "amount" => amounts, "price" => prices)
}

fn shops() -> PolarsResult<DataFrame> {
    let numbers: Vec<u32> = (0..2_000).collect();
    let regions: Vec<String> = numbers.iter().map(|number| format!("region {:02}", number % 37)).collect();
    df!("shop" => numbers, "region" => regions)
}

fn main() -> PolarsResult<()> {
    let rows = std::env::args().nth(1).and_then(|rows| rows.parse().ok()).unwrap_or(2_000_000);
    let sales = sales(rows)?;
    let totals = sales
        .lazy()
        .join(shops()?.lazy(), [col("shop")], [col("shop")], JoinArgs::new(JoinType::Inner))
        .with_column((col("amount") * col("price")).alias("total"))
        .group_by([col("region"), col("article")])
        .agg([col("total").sum(), col("amount").sum(), len().alias("sales")])
        .sort(["total"], SortMultipleOptions::default().with_order_descending(true))
        .collect()?;
    println!("{} groups of {rows} sales", totals.height());
    for row in 0..3.min(totals.height()) {
        println!("{:?}", totals.get_row(row)?.0);
    }
    Ok(())
}
