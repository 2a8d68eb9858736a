#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace smooth {

/// A gray image, row by row.
struct Image {
    std::size_t width = 0;
    std::size_t height = 0;
    std::vector<float> pixels;

    Image(std::size_t w, std::size_t h) : width(w), height(h), pixels(w * h) {}
    float& at(std::size_t x, std::size_t y) { return pixels[y * width + x]; }
    float at(std::size_t x, std::size_t y) const { return pixels[y * width + x]; }
};

Image random_image(std::size_t width, std::size_t height, std::uint32_t seed);

/// The mean of the 3x3 neighborhood; pixels beyond the border repeat the border.
void box_filter(const Image& in, Image& out);

}  // namespace smooth
