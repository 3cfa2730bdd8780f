#include <gtest/gtest.h>
#include "sordino/correlation/sensitivity.h"
