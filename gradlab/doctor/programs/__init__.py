"""Running a program under the doctor, wherever it trains."""
