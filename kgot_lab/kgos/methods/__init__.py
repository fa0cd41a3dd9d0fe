"""Query methods: functions over a PropertyGraph whose results print, convert to a data frame and give
reasons.
"""
