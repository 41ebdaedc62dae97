select kelvin_nap();
