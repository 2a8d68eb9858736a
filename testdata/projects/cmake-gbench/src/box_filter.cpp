#include <algorithm>

#include "smooth/image.hpp"

namespace smooth {

void box_filter(const Image& in, Image& out) {
    const long w = static_cast<long>(in.width);
    const long h = static_cast<long>(in.height);
    for (long x = 0; x < w; ++x) {
        for (long y = 0; y < h; ++y) {
            float sum = 0.0f;
            for (long dy = -1; dy <= 1; ++dy) {
                for (long dx = -1; dx <= 1; ++dx) {
                    const long sx = std::clamp(x + dx, 0L, w - 1);
                    const long sy = std::clamp(y + dy, 0L, h - 1);
                    sum += in.at(sx, sy);
                }
            }
            out.at(x, y) = sum / 9.0f;
        }
    }
}

}  // namespace smooth
