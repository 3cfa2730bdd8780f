// Nothing of it is needed (cmake/SordinoGloo.cmake).
#pragma once
