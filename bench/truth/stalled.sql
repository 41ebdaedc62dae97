select count(*) from kelvin_stalled;
