/* The other file. */
float blend(float a, float b);
float blend(float a, float b) { return a * 0.75f + b * 0.25f; }
