#include <benchmark/benchmark.h>

#include "smooth/image.hpp"

static void BM_BoxFilter(benchmark::State& state) {
    const auto side = static_cast<std::size_t>(state.range(0));
    const smooth::Image in = smooth::random_image(side, side, 7);
    smooth::Image out(side, side);
    for (auto _ : state) {
        smooth::box_filter(in, out);
        benchmark::DoNotOptimize(out.pixels.data());
        benchmark::ClobberMemory();
    }
    double sum = 0.0;
    for (float pixel : out.pixels) sum += pixel;
    state.counters["checksum"] = sum;
    state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(side * side));
}
BENCHMARK(BM_BoxFilter)->Arg(128)->Arg(512)->Unit(benchmark::kMicrosecond);

BENCHMARK_MAIN();
