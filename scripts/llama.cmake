# Read by CMake at the `project` call of llama.cpp and of ggml (CMAKE_PROJECT_…_INCLUDE): leaves out llama.cpp's common
# library, which the Python package does not use and asks for.
if(PROJECT_NAME STREQUAL "llama.cpp")
    set(LLAMA_BUILD_COMMON OFF)
endif()
