#include "sordino/correlation/sensitivity.h"
#include <gtest/gtest.h>
