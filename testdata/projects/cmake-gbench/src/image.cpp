#include "smooth/image.hpp"

namespace smooth {

Image random_image(std::size_t width, std::size_t height, std::uint32_t seed) {
    Image image(width, height);
    std::uint32_t state = seed * 2654435761u + 1;
    for (float& pixel : image.pixels) {
        state = state * 1664525u + 1013904223u;
        pixel = static_cast<float>(state >> 8) / 16777216.0f;
    }
    return image;
}

}  // namespace smooth
